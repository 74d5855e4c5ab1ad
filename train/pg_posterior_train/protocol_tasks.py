"""Tasks of the papers' protocols (protocols.py), what the process that drew them says of them, and
a model's independent answers.
"""
import torch

from .classes import classify, is_classifier
from .predict import joint_density, predict
from .prior import PRIORS, curves, fields
from .tasks import Tasks

BATCH = 16           # tasks drawn together
PAIRS = 1 << 22      # pairs of rows in a batch: of tasks of many rows fewer are

# Rows of these are asked alone: the papers' tables have no joint answers about them.
ALONE = ("feeder", "fields", "images", "sir")


def batch_of(protocol, given):
    """Tasks drawn together."""
    return max(1, min(BATCH, PAIRS // (given + protocol["targets"]) ** 2))


def draw(protocol, generator, tasks, given):
    """Tasks of a protocol, and what the process that drew them says: {name: [B]}; of simulators
    and pictures nothing.
    """
    options, m = protocol["prior"], protocol["targets"]
    process = protocol.get("process", "curves")
    if process == "fields":
        drawn, known = fields.draw(generator, tasks, given + m, **options)
        mean, sd = fields.exact(drawn, given, noise=options["noise"], **known)
        asked = drawn.y[:, given:].double()
        density = torch.distributions.Normal(mean, sd).log_prob(asked).mean(1)
        error = (asked - mean).square().mean(1)
        return drawn, {"exact, factorised": density, "exact, squared error": error}
    if process != "curves":
        return PRIORS[process](generator, tasks, given + m, **options), {}
    latent = {"given": given} if options.get("latent") else {}
    drawn = curves.draw(generator, tasks, given + m, **options, **latent)
    if not drawn.kernels:
        return drawn.tasks, {}
    alone, joint = curves.exact(drawn, given)
    exact = {"exact, factorised": alone.mean(1)}
    return drawn.tasks, exact if joint is None else {**exact, "exact, joint": joint / m}


def errors(difference, kinds):
    """Means [B] of errors [B, ...], of each kind that the protocol names."""
    flat = difference.double().flatten(1)
    made = {"squared error": flat.square().mean(1), "absolute error": flat.abs().mean(1)}
    return {name: made[name] for name in kinds}


def class_answers(model, data, given):
    """Scores of independent answers about states. Those that the context does not have are left
    out: no answer names them.
    """
    log_p, _, true, known = classify(model, data, given)
    count = known.double().sum(1).clamp_min(1)
    right = (log_p.argmax(2) == true) & known
    density = torch.where(known, log_p.gather(2, true[..., None])[..., 0], 0.0).double()
    return {"factorised": density.sum(1) / count, "accuracy": right.double().sum(1) / count}


def one_by_one(model, data, given, kinds):
    """A model of one target asked about each of several: means over them."""
    each = [number_answers(model, Tasks(data.x, data.y[..., d], data.categorical), given, kinds)
            for d in range(data.y.shape[2])]
    return {name: torch.stack([one[name] for one in each]).mean(0) for name in each[0]}


def number_answers(model, data, given, kinds):
    asked = data.y[:, given:]
    answer = predict(model, data, given)
    targets = asked.shape[2] if asked.ndim == 3 else 1
    density = answer.log_prob(asked).double().mean(1) / targets
    return {"factorised": density, **errors(answer.moments()[0] - asked, kinds)}


def independent(model, protocol, data, given):
    """Scores {name: [B]} of what the model says of the rows after the first `given`."""
    config = model.config
    if config["head"]["kind"] == "joint-gaussian":
        return {"joint": joint_density(model, data, given) / protocol["targets"]}
    wanted = protocol.get("errors", [])
    kinds = ["squared error"] if wanted is True else wanted
    if is_classifier(config):
        row = class_answers(model, data, given)
    elif data.y.ndim == 3 and config["target"].get("count", 1) == 1:
        row = one_by_one(model, data, given, kinds)
    else:
        row = number_answers(model, data, given, kinds)
    if protocol.get("per_pixel"):
        targets = data.y.shape[2] if data.y.ndim == 3 else 1
        row["negative log likelihood per pixel"] = -targets * row["factorised"]
    return row
