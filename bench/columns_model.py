"""Write a model of TabICL's published shape with random weights: what it costs does not depend on
what it has learned.

    columns_model.py FILE [classes]       28.6 million parameters; a classifier of 10 classes

SPDX-License-Identifier: PostgreSQL
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "reference"))
from column_models import LICENCE, SECOND, shapes, write_safetensors  # noqa: E402

PUBLISHED = {
    **SECOND, "num_quantiles": 999, "embed_dim": 128, "col_num_blocks": 3, "col_nhead": 8,
    "col_num_inds": 128, "row_num_blocks": 3, "row_nhead": 8, "row_num_cls": 4,
    "icl_num_blocks": 12, "icl_nhead": 8,
}


def random_weights(c):
    """name -> float32 array; norms near one, layers that keep the size of what they read."""
    random = np.random.default_rng(7)
    made = {}
    for name, shape in shapes(c).items():
        if name.endswith("rope.freqs"):
            width = c["embed_dim"] // c["row_nhead"]
            made[name] = c["row_rope_base"] ** (-np.arange(0, width, 2) / width)
            continue
        u = random.uniform(-1, 1, shape)
        norm = any(part in name for part in (".norm", "_ln.", ".ln.", ".ln_"))
        if name.endswith("weight"):
            u = 1 + 0.1 * u if norm else u * np.sqrt(1.5 / shape[-1])
        made[name] = 0.1 * u if name.endswith("bias") else u
    return made


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    c = PUBLISHED if len(sys.argv) == 2 else {**PUBLISHED, "max_classes": 10}
    write_safetensors(sys.argv[1], {"config": json.dumps(c), "license": LICENCE,
                                    "source": "random weights of the published shape"},
                      random_weights(c))


if __name__ == "__main__":
    main()
