"""What a configuration may say of each prior: its options, by the names that prior/ gives them."""

from .config_values import (SMALLEST, array, boolean, choice, fail, integer, is_number, number,
                            objects, or_null, text)
from .prior import classes, curves, tabular

POSITIVE, LEAST_0, SHARE = number(SMALLEST), number(0), number(0, 1)
COLUMNS = integer(1, 1024)


def interval(read_one):
    """Two numbers, the second of which is not below the first."""
    def read(path, value):
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            fail(path, f"{value!r} is not two numbers")
        for i, one in enumerate(value):
            read_one(f"{path}[{i}]", one)
        if value[0] > value[1]:
            fail(path, f"{value!r}: the first number is above the second")

    return read


ANYWHERE = interval(number())


def distribution(read_one):
    """A constant, or what draw_number of prior/curves.py draws from."""
    kinds = {"uniform": interval(read_one), "log_uniform": interval(POSITIVE),
             "beta": array(integer(1, 1000), 2)}

    def read(path, value):
        if is_number(value):
            read_one(path, value)
            return
        if not isinstance(value, dict) or len(value) != 1:
            fail(path, f"{value!r} is neither a number nor one of "
                       + ", ".join(f'{{"{kind}": [a, b]}}' for kind in kinds))
        (kind, numbers), = value.items()
        choice(*kinds)(path, kind)
        kinds[kind](f"{path}.{kind}", numbers)
        if len(numbers) != 2:
            fail(f"{path}.{kind}", f"{numbers!r} is not two numbers")

    return read


def constant_or_interval(read_one):
    def read(path, value):
        (read_one if is_number(value) else interval(read_one))(path, value)

    return read


def inputs(path, value):
    """Of curves: an interval, a Sobol sequence or a grid in one."""
    if not isinstance(value, dict):
        ANYWHERE(path, value)
    elif "grid" in value:
        objects({"grid": ANYWHERE, "points": integer(1, 1000000)})(path, value)
    else:
        objects({"sobol": ANYWHERE})(path, value)


def shares(*families):
    """How often each family of tasks comes."""
    return objects({}, {family: LEAST_0 for family in families})


def none_empty(read):
    """An array of at least one value."""
    def read_more(path, value):
        read(path, value)
        if not value:
            fail(path, "empty")

    return read_more


FAMILIES = tuple(tabular.WEIGHTS) + ("sharp", "ordered", "formula")
OPTIONS = {
    "classes": {
        "max_features": COLUMNS,
        "families": none_empty(array(choice(*classes.WEIGHTS))),
    },
    "curves": {
        "kernels": none_empty(array(choice(*curves.KERNELS))),
        "weights": array(LEAST_0),
        "lengthscale": distribution(POSITIVE),
        "period": distribution(POSITIVE),
        "variance": distribution(POSITIVE),
        "noise": distribution(LEAST_0),
        "inputs": inputs,
        "sawtooth": objects({"frequency": distribution(number())}),
        "latent": boolean,
        "functions": integer(1, 1000000),
    },
    "feeder": {
        "spread": constant_or_interval(SHARE),
        "bus": or_null(integer(2, 33)),
    },
    "fields": {
        "features": COLUMNS,
        "lengthscale": distribution(POSITIVE),
        "variance": distribution(POSITIVE),
        "noise": LEAST_0,
        "inputs": ANYWHERE,
        "shift": distribution(number()),
        "functions": integer(1, 1000000),
    },
    "gp1d": {},
    "images": {"folder": text, "size": integer(1, 4096)},
    "multisensory": {"recalibration": POSITIVE},
    "numbers": {"columns": integer(2, 1024)},
    "sir": {
        "size": integer(2, 4096),
        "infection": interval(SHARE),
        "recovery": interval(SHARE),
        "steps": interval(integer(0, 1000000)),
        "seeds": integer(1, 1000000),
    },
    "tabular": {
        "max_features": COLUMNS,
        "families": none_empty(array(choice(*FAMILIES))),
        "weights": shares(*FAMILIES),
        "near_copies": SHARE,
        "padded": SHARE,
        "absent": SHARE,
        "events": SHARE,
        "breaks": SHARE,
    },
}


def together(path, prior):
    """Refuse options that are right one by one, and not with each other."""
    weights, kernels = prior.get("weights"), prior.get("kernels", ["rbf"])
    if prior["name"] == "curves":
        if weights is not None and (len(weights) != len(kernels) or not any(weights)):
            fail(path + ".weights", f"{weights!r} are not {len(kernels)} weights of kernels, one "
                                    "of them above 0")
        if "sawtooth" not in prior and not is_number(prior.get("noise", 0)):
            fail(path + ".noise", "a distribution of it is for sawtooth waves alone")
        for key in ("latent", "functions"):
            if "sawtooth" in prior and prior.get(key, 1) not in (False, 1):
                fail(f"{path}.{key}", "not with sawtooth")
    if prior["name"] == "tabular":
        used = {**tabular.WEIGHTS, **(weights or {})}
        families = prior.get("families", used)
        if not any(used.get(family, 0.1) for family in families):
            fail(path + ".weights", "all families that take part have the weight 0")
        most = prior.get("max_features", 64)
        fewest = min(tabular.FEWEST_COLUMNS.get(family, 1) for family in families)
        if most < fewest:
            fail(path + ".max_features", f"{most} columns are too few for these families, which "
                                         f"take {fewest}")
    if prior["name"] == "sir" and prior.get("seeds", 3) > prior.get("size", 64) ** 2:
        fail(path + ".seeds", "more than there are cells")


def prior(path, value):
    """A prior that prior/ has, by its `name`, and its options; one of another name is for the
    function that draws the tasks to refuse.
    """
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        fail(path + ".name", "missing")
    if value["name"] in OPTIONS:
        objects({"name": text}, OPTIONS[value["name"]])(path, value)
        together(path, value)
