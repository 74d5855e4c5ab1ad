#!/usr/bin/env python3
"""Sums at the gate of `tabular`, a prototype: docs/sums-tried.md, "at the gate of tabular".

    bench/sums_gate.py FOLDER

The gate of the bundled `tabular` chooses for every query between the network and a Gaussian process
of the context (docs/model-format.md, section 8). Here it is told, without any training, what sums
say instead, or both are; sums say of a row of the context what they say without it. FOLDER has
elevators, protein and skillcraft as bench/sums_quality.py takes them. Needs PyTorch.

SPDX-License-Identifier: PostgreSQL
"""
import math
import sys

import numpy as np
import sums_heads as heads
import sums_noise as noise
import sums_quality as quality
import torch
from pg_posterior_train.clip import soft_clip
from pg_posterior_train.export import read_model
from pg_posterior_train.heads import distribution
from pg_posterior_train.mixture import Mixture
from pg_posterior_train.model import make_model
from pg_posterior_train.normalise import prepare
from pg_posterior_train.process import NUMBERS
from pg_posterior_train.tasks import numeric
from safetensors_io import read_model as read_sums
from sums import Basis

QUERIES = 500


def said_by_sums(config, x, y, n, clip):
    """[1, N, NUMBERS] as of process.opinions."""
    basis = Basis(config, ["numeric"] * x.shape[1], x[:n], y[:n])
    (rows, groups, squares), queries = basis.features(x[:n]), basis.features(x[n:])[0]
    u = (y[:n] - basis.center) / basis.scale
    fit = noise.Fit(config, rows, u, groups, squares)
    mean, sd = heads.spread(fit, queries)
    leverage = fit.weights @ fit.at(rows)[1]
    around = np.sqrt(fit.variance / np.maximum(1 - leverage, 0.05))
    error = fit.errors(rows, u)
    density = np.mean(-0.5 * (error / around) ** 2 - np.log(around) - 0.5 * math.log(2 * math.pi))
    log_sd = np.log(np.concatenate([around, sd]))
    said = np.stack([np.concatenate([u - error, mean]), log_sd,
                     np.full_like(log_sd, 0.5 * math.log(fit.variance)),
                     np.full_like(log_sd, density)], axis=1)
    said = torch.tensor(said, dtype=torch.float32)[None]
    said[..., (0, 3)] = soft_clip(said[..., (0, 3)], clip)
    return said


def gated(model, head, sides):
    """Parameters [M, 3 (C + sides)] of mixtures: the network's and of each side (gate, mean, log of
    the deviation), whose gates share what one would have.
    """
    plain = Mixture(head, model.head.gate.plain)
    u = torch.stack([s[..., 0] for s in sides], -1) - math.log(len(sides))
    weights = torch.cat([torch.zeros_like(u[..., :1]), u], -1).softmax(-1)
    w = torch.cat([plain.log_weight.exp() * weights[..., :1], weights[..., 1:]], -1)
    m = torch.cat([plain.mean, *(s[..., 1:2] for s in sides)], -1)
    sd = torch.cat([plain.sd, *(s[..., 2:3].exp() for s in sides)], -1)
    return torch.cat([w, m, sd], -1)[0].double().numpy()


@torch.no_grad()
def run(model, config, x, y, n):
    """Scores [n, 4] by name."""
    tasks = numeric(*(torch.tensor(a, dtype=torch.float32)[None] for a in (x, y)))
    inputs = prepare(tasks, n, model.config)
    sums = said_by_sums(config, x, y, n, model.config["target"]["clip"])
    process = inputs.x[..., -NUMBERS:]
    seen = torch.full((len(y) - n,), n)

    outputs = model(inputs.x[:, :n], inputs.y_input[:, :n], inputs.x[:, n:], n, seen)
    head, size = outputs[..., :-3], inputs.x[:, n:, 4]
    by_process, by_sums = (model.head.gate(head, s[:, n:], size) for s in (process, sums))
    better = by_sums if sums[0, 0, 3] > process[0, 0, 3] else by_process
    whole = distribution(model, outputs)
    found = {"process": [by_process], "sums": [by_sums], "both": [by_process, by_sums],
             "the better of both": [better]}
    params = {name: gated(model, head, sides) for name, sides in found.items()}
    same = np.concatenate([t[0].double().numpy() for t in (whole.log_weight.exp(), whole.mean,
                                                           whole.sd)], axis=1)
    truth = inputs.y[0, n:].double().numpy()
    assert np.allclose(quality.log_loss(same, truth), quality.log_loss(params["process"], truth),
                       atol=1e-4)
    return {name: quality.mixture_scores(p, truth) for name, p in params.items()}


def main():
    torch.set_num_threads(1)
    config = read_sums(quality.ROOT + "/models/tabular_sums.safetensors")[0]
    made, state = read_model(quality.ROOT + "/models/tabular.safetensors")
    model = make_model(made)
    model.load_state_dict(state)
    model.eval()
    quality.header("", "rows", "at the gate", "log loss", "less", "RMSE", "CRPS", "80 / 90 %")
    for n, name in ((n, name) for n in (256, 1024) for name in (*quality.TABLES, *quality.NAMES)):
        runs = []
        for seed in (100, 101, 102):
            if name in quality.TABLES:
                x, y = noise.rows_of(sys.argv[1], name, n, seed)
            else:
                x, y, _ = quality.made(name, n, seed)
            runs.append(run(model, config, x[:n + QUERIES], y[:n + QUERIES], n))
        for way in runs[0]:
            scores = [r[way] for r in runs]
            less = [np.mean(r[way][:, 0] - r["process"][:, 0]) for r in runs]
            mean, _ = quality.summary(scores)
            quality.row(name, n, way, f"{mean[0]:.3f}",
                        f"{np.mean(less):.3f} ± {np.std(less, ddof=1) / math.sqrt(3):.3f}",
                        f"{mean[1]:.3f}", f"{mean[2]:.4f}",
                        quality.percent(quality.covered(scores)[1:3]))


if __name__ == "__main__":
    main()
