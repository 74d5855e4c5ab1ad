"""Bayesian optimisation with a trained model, by the protocol of Jenson et al. 2024: the least
value of a function is looked for among given points, one observation at a time.

Each step asks for the point whose expected improvement on the least value so far is greatest, as
the surrogate sees it: E[max(best − Y, 0)], in closed form (Jones, Schonlau and Welch 1998). Regret
is the least value seen less the least there is. What the paper leaves open stands in
docs/papers.md, "Readings of the protocols".

A surrogate is a function of (which, seen, x, best): numbers [b] of the functions that are asked
about, rows seen [b, n] of them, points x [b, L, 1] and the least value seen [b], to expected
improvements [b, L].
"""
import math
from dataclasses import replace

import torch

from .predict import predict
from .prior import curves
from .tasks import Tasks, choose

SEED = 990_001
BATCH = 64           # functions that are optimised together


def normal_improvement(best, mean, sd):
    """E[max(best − Y, 0)] of Gaussian Y; broadcasts. Without a deviation it is max(best − mean, 0).
    """
    gap = best - mean
    z = gap / sd.clamp_min(1e-300)
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    return (gap * 0.5 * torch.erfc(-z / math.sqrt(2)) + sd * density).clamp_min(0)


def improvement(prediction, best):
    """Expected improvements [B, M] of predicted Gaussians or mixtures on best [B], in raw units."""
    mixture = prediction.mixture
    if not hasattr(mixture, "log_weight"):
        raise SystemExit("protocols: optimisation needs a head of Gaussians, not of bars")
    standard = prediction.standard(best[:, None])[..., None].double()
    each = normal_improvement(standard, mixture.mean.double(), mixture.sd.double())
    return (mixture.log_weight.double().exp() * each).sum(-1) * prediction.scale


def model_surrogate(model):
    def surrogate(which, seen, x, best):
        given = seen.y.shape[1]
        asked = Tasks(torch.cat([seen.x, x], 1),
                      torch.cat([seen.y, torch.zeros_like(x[..., 0])], 1), seen.categorical)
        return improvement(predict(model, asked, given), best)
    return surrogate


def exact_surrogate(drawn, noise):
    """The process that drew the functions, with its true hyperparameters, which takes what it sees
    to have a deviation of `noise`.
    """
    def surrogate(which, seen, x, best):
        one = replace(drawn, kernel=drawn.kernel[which], lengthscale=drawn.lengthscale[which],
                      period=drawn.period[which], variance=drawn.variance[which])
        places, asked = seen.x[..., 0], x[..., 0]
        own = curves.task_covariance(one, places, places)
        own.diagonal(dim1=1, dim2=2).add_(max(noise**2, curves.JITTER))
        cross = curves.task_covariance(one, places, asked)
        white = torch.linalg.solve_triangular(
            torch.linalg.cholesky(own), torch.cat([seen.y[..., None].double(), cross], 2),
            upper=False)
        mean = (white[..., :1] * white[..., 1:]).sum(1)
        variance = one.variance.double()[:, None] - white[..., 1:].square().sum(1)
        return normal_improvement(best.double()[:, None], mean, variance.clamp_min(0).sqrt())
    return surrogate


def optimise(surrogate, tasks, start, steps, again=True):
    """Regret [B, steps + 1] on functions whose values at points are `tasks`: of the first `start`
    points, and after each step.

    again: a point that has been seen may be asked for again, which gains nothing. Functions whose
    least value has been seen are asked about no further.
    """
    least = tasks.y.amin(1)
    regret = torch.zeros(len(least), steps + 1, dtype=torch.float64)
    which = torch.arange(len(least))
    index = torch.arange(start).expand(len(least), -1)
    best = tasks.y[:, :start].amin(1)
    for step in range(steps + 1):
        regret[which, step] = best.double() - least[which].double()
        left = best > least[which]
        which, index, best = which[left], index[left], best[left]
        if step == steps or len(which) == 0:
            break
        here = Tasks(tasks.x[which], tasks.y[which], tasks.categorical[which])
        gain = surrogate(which, choose(here, index), here.x, best)
        if not again:
            gain = gain.scatter(1, index, -math.inf)
        found = gain.argmax(1, keepdim=True)
        index = torch.cat([index, found], 1)
        best = torch.minimum(best, here.y.gather(1, found)[:, 0])
    return regret


def random_search(tasks, start, steps):
    """As `optimise`, of points in their order, which is random."""
    best = tasks.y.cummin(1).values[:, start - 1:start + steps]
    return best.double() - tasks.y.amin(1, keepdim=True).double()


def one_batch(model, protocol, number, count):
    """Regrets of `count` functions: {strategy: [count, steps + 1]}."""
    plan = protocol["optimise"]
    start, steps = plan["start"], plan["steps"]
    generator = torch.Generator().manual_seed(SEED + number)
    drawn = curves.draw(generator, count, plan["points"], **protocol["prior"])
    tasks = drawn.tasks
    asked = model_surrogate(model)
    found = {"model": optimise(asked, tasks, start, steps),
             "model, no point twice": optimise(asked, tasks, start, steps, again=False),
             "random": random_search(tasks, start, steps),
             "exact": optimise(exact_surrogate(drawn, 0.0), tasks, start, steps, again=False)}
    if plan.get("noise"):
        noisy = exact_surrogate(drawn, plan["noise"])
        found[f"exact, noise {plan['noise']:g}"] = optimise(noisy, tasks, start, steps)
    return found


@torch.no_grad()
def evaluate(model, protocol, tasks):
    """The table of one protocol: regrets of the model and of others on the same functions."""
    plan = protocol["optimise"]
    parts = [one_batch(model, protocol, i, min(BATCH, tasks - i * BATCH))
             for i in range(-(-tasks // BATCH))]
    regret = {name: torch.cat([p[name] for p in parts]) for name in parts[0]}
    regret["model above exact"] = regret["model"] - regret["exact"]
    regret["model finds it"] = (regret["model"] <= 0).double()
    shown = sorted({*range(0, plan["steps"], plan.get("every", 10)), plan["steps"]})
    rows = {str(k): {name: summary(v[:, k]) for name, v in regret.items()} for k in shown}
    return {"title": protocol["title"], "head": "steps", "rows": rows, "tasks": tasks,
            "caption": f"{tasks} functions, {plan['points']} points, {plan['start']} of them seen "
                       f"before the first step; regret.",
            "paper": protocol.get("paper", {})}


def summary(v):
    return {"mean": float(v.mean()), "se": float(v.std() / math.sqrt(len(v)))}
