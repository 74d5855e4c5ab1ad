"""Write the model that is measured: the size of the buffer paper's, random weights.

    make_model.py FILE

Width 128, 6 layers, 4 heads, feed-forward 256, 20 components (Hassan et al., section 5);
prefix-causal, so that rows can be appended; weights of 16 bits, like those of the bundled models.
The arithmetic does not depend on what they say; every machine writes the same bytes.

SPDX-License-Identifier: PostgreSQL
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "reference"))
import make_models  # noqa: E402

CONFIG = {
    **make_models.BASE,
    "description": "random weights, for benchmarks",
    "inputs": {"features": 1, "scaling": "none"},
    "min_rows": 1,
    "context": "prefix-causal",
    "chain": {"buffer": None, "mask": "inclusive"},
    "width": 128, "layers": 6, "heads": 4, "feedforward": 256,
    "norm": {"kind": "layer", "placement": "pre", "eps": 1e-5, "final": True},
    "activation": "gelu",
    "attention": {"bias": "none", "sinks": 0, "log_scale": False},
    "embedder": {"kind": "additive", "x": {"kind": "mlp", "hidden": [256, 256]},
                 "y": {"kind": "mlp", "hidden": [256, 256]}, "roles": False, "positions": 0},
    "head": {"kind": "mixture", "hidden": [128], "components": 20, "std": "softplus",
             "floor": 0.001},
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make_models.write_model(sys.argv[1], CONFIG, make_models.random_weights(CONFIG, 1), "F16")


if __name__ == "__main__":
    main()
