"""PyTorch on the GPU, eager and as CUDA graphs, on the same weights as bench/cuda.c.

    cuda_baseline.py model MODEL            write the reference model of the benchmark, random
    weights: width 128, 6 layers, 4 heads
    cuda_baseline.py measure MODEL          time it: the lines of bench/cuda.c, with the columns
    eager and graph
    cuda_baseline.py table KERNEL TORCH     both, as far as there are such files, side by side, with
    ratios, and the targets and floors of bench/cuda_model, as Markdown

`measure` needs PyTorch with CUDA; `model` needs numpy only.

SPDX-License-Identifier: PostgreSQL
"""
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [
    os.path.join(ROOT, "train"),
    os.path.join(ROOT, "test", "reference"),
    os.path.join(ROOT, "bench")
]

# microseconds: the limit of an H100 for the reference model (cuda/README.md)
FLOORS = {
    "predict 1 (1k)": 2, "predict 16 (1k)": 2, "predict 1024 (1k)": 7, "predict 1M (1k)": 6700,
    "sample 16 x 1 (1k)": 2, "sample 16 x 16 (1k)": 4,
    "sample 16 x 256 (1k)": 49, "sample 16 x 4096 (1k)": 780, "score 16, 128 orders (1k)": 25,
    "build 1k": 6, "build 10k": 541, "append 1 (10k)": 9,
}

# microseconds: what is aimed at
TARGETS = {
    "predict 1 (1k)": 35, "predict 1M (1k)": 18000, "sample 16 x 256 (1k)": 800,
    "sample 16 x 4096 (1k)": 2500, "build 10k": 1500, "append 1 (10k)": 60,
}


def write_reference_model(path):
    """The bundled models' architecture in the size that the floors are computed for."""
    from make_models import random_weights
    from safetensors_io import write_model

    config = {
        "format": 1, "description": "random weights, for benchmarks", "architecture": "packed",
        "inputs": {"features": 1, "scaling": "none"}, "target": {"scaling": "none"}, "min_rows": 0,
        "context": "prefix-causal",
        "chain": {"buffer": None, "mask": "inclusive"}, "width": 128, "layers": 6, "heads": 4,
        "feedforward": 256,
        "norm": {"kind": "rms", "placement": "pre", "eps": 1e-6, "final": True},
        "activation": "gelu",
        "attention": {"bias": "none", "sinks": 8, "log_scale": True},
        "embedder": {"kind": "additive", "x": {"kind": "mlp", "hidden": [256]},
                     "y": {"kind": "mlp", "hidden": [256]}, "roles": False, "positions": 0},
        "head": {"kind": "mixture", "hidden": [256], "components": 20, "std": "softplus",
                 "floor": 0.001},
    }
    write_model(path, config, random_weights(config, 1))


def median_time(torch, call, seconds=0.25, rounds=50):
    """Median microseconds of a call, the device included."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    times, began = [], time.perf_counter()
    while len(times) < 5 or (len(times) < rounds and time.perf_counter() - began < seconds):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


def graphed(torch, call):
    """The call as a CUDA graph, or None where it cannot be captured."""
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph.replay
    except RuntimeError as error:
        torch.cuda.synchronize()
        print(f"# not captured: {str(error).splitlines()[0]}")
        return None


def measure(path):
    import torch
    from torch_baseline import Baseline

    torch.distributions.Distribution.set_default_validate_args(False)
    torch.set_default_device("cuda")
    torch.manual_seed(1)
    name = os.path.basename(path)
    print(f"# PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, fp32 with tf32 products")
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.no_grad():
        baseline = Baseline(path)
        baseline.model.to("cuda")
        for n, label in ((1024, "1k"), (10240, "10k")):
            x = 4 * torch.rand(n, 1) - 2
            y = torch.sin(2 * x[:, 0])
            questions = {f"build {label}": lambda: baseline.encode(x, y)}
            baseline.encode(x, y)
            for m in (1, 16, 1024) if n == 1024 else (1,):
                q = 4 * torch.rand(m, 1) - 2
                questions[f"predict {m} ({label})"] = lambda q=q: baseline.predict(q)
            if n == 1024:
                q = 4 * torch.rand(16, 1) - 2
                for draws in (1, 16, 256, 4096):
                    questions[
                        f"sample 16 x {draws} ({label})"] = lambda draws=draws: baseline.sample(
                            q, draws)
                questions[f"score 16, 128 orders ({label})"] = lambda: baseline.density(
                    q, torch.sin(q[:, 0]), 128)
            for question, call in questions.items():
                eager = median_time(torch, call)
                replay = graphed(torch, call)
                graph = f"{median_time(torch, replay):.1f}" if replay else "-"
                print(f"{name}\t{question}\t{eager:.1f}\t{graph}", flush=True)


def read_lines(path):
    with open(path, encoding="utf-8") as f:
        return [
            line.rstrip("\n").split("\t") for line in f if "\t" in line and not line.startswith("#")
        ]


def print_table(kernels, baseline):
    other = {
        (row[0], row[1]): row[2:]
        for row in read_lines(baseline) if len(row) == 4
    } if os.path.exists(baseline) else {}

    def ratio(text, by):
        return f"{float(text) / by:.1f}" if text not in ("", "-") and by > 0 else "-"

    print(
        "| model | question | kernels, µs | call, µs | launches | target, µs | kernels / target | "
        "floor, µs | kernels / floor | torch eager / call | torch graph / call |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    lines = read_lines(kernels) if os.path.exists(kernels) else []
    # a line that was cut off while it was written has fewer fields
    for model, question, kernel, call, launches in (line for line in lines if len(line) == 5):
        eager, graph = other.get((model, question), ("-", "-"))
        floor = FLOORS.get(question) if model.startswith("reference") else None
        target = TARGETS.get(question) if model.startswith("reference") else None
        print(
            f"| {model} | {question} | {kernel} | {call} | {launches} | {target or '-'} | "
            f"{ratio(kernel, target) if target else '-'} | {floor or '-'} | "
            f"{ratio(kernel, floor) if floor else '-'} "
            f"| {ratio(eager, float(call))} | {ratio(graph, float(call))} |")


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    {"model": write_reference_model, "measure": measure, "table": print_table}[command](*arguments)
