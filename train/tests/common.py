"""Small configurations and tasks shared by the tests."""
import copy
import json
import os
import random

import torch

from pg_posterior_train.model import make_model
from pg_posterior_train.prior import PRIORS

CONFIGS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "configs")
MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "models")


def is_protocol(name):
    """Whether a configuration says what is measured, and not what is trained."""
    with open(os.path.join(CONFIGS, name + ".json"), encoding="utf-8") as f:
        return list(json.load(f)) == ["evaluation"]


def config(name, width=16, layers=2):
    """A training configuration shrunk to test size."""
    with open(os.path.join(CONFIGS, name + ".json")) as f:
        c = json.load(f)
    small = {"width": width, "layers": layers, "heads": 2, "feedforward": 2 * width}
    c["model"].update({key: value for key, value in small.items() if key in c["model"]})
    c["training"]["shapes"] = [{"weight": 1, "rows": 12, "tasks": 8, "extra": 4}]
    return copy.deepcopy(c)


def random_model(name, seed=0):
    """A model with random weights everywhere (also where training starts from zero), in float64."""
    torch.manual_seed(seed)
    model = make_model(config(name)["model"])
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return model.double().eval()


def tasks(name, count, rows, seed=0, **options):
    """Tasks of a prior, in float64."""
    generator = torch.Generator().manual_seed(seed)
    drawn = PRIORS[name](generator, count, rows, shared=random.Random(seed), **options)
    return drawn.to(torch.float64)
