"""PyTorch's time to encode a context of a bundled model with one column: milliseconds for each
number of rows, one per line.

    encode_baseline.py MODEL ROWS...

Eager, float32, with its own fused attention; the better of one thread and as many as there are
processors, which the fewest rows decide, and the faster of two turns. For bench/contexts.

SPDX-License-Identifier: PostgreSQL
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "train"))
import torch  # noqa: E402
from pg_posterior_train.attention import FUSED  # noqa: E402
from torch_baseline import Baseline, inputs  # noqa: E402


def encode(baseline, rows, threads):
    """Milliseconds to encode rows of noise, which cost what others do."""
    torch.set_num_threads(threads)
    found = inputs(baseline.model.config, 4 * torch.rand(rows, 1) - 2, torch.rand(rows), rows)
    start = time.perf_counter()
    Baseline(None, baseline.model).encode(found[0], found[2])
    return 1e3 * (time.perf_counter() - start)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if not FUSED:
        sys.exit(
            "this PyTorch has no fused attention: the weights of 30,000 rows would take more "
            "memory than most machines have"
        )
    baseline, sizes = Baseline(sys.argv[1]), [int(n) for n in sys.argv[2:]]
    encode(baseline, sizes[0], 1)    # the first call makes what PyTorch keeps
    threads = min((1, os.cpu_count()),
                  key=lambda n: min(encode(baseline, sizes[0], n) for _ in range(2)))
    for n in sizes:
        print(f"{min(encode(baseline, n, threads) for _ in range(2)):.1f}", flush=True)


if __name__ == "__main__":
    main()
