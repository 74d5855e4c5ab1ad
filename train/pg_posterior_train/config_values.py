"""Readers of configuration values: each takes the path of a key and its value, and refuses a wrong
value by that path.
"""

import math

LARGEST = 1.7976931348623157e308
SMALLEST = 2.2250738585072014e-308


class ConfigError(ValueError):
    """A configuration that cannot be trained; the message names the key."""


def fail(path, message):
    raise ConfigError(f"{path}: {message}")


# Values -------------------------------------------------------------------------------------------


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def integer(low, high):
    def read(path, value):
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            fail(path, f"{value!r} is not an integer from {low} to {high}")

    return read


def number(low=-LARGEST, high=LARGEST):
    def read(path, value):
        if not is_number(value) or not low <= value <= high:
            fail(path, f"{value!r} is not a number from {low:g} to {high:g}")

    return read


def boolean(path, value):
    if not isinstance(value, bool):
        fail(path, f"{value!r} is neither true nor false")


def text(path, value):
    if not isinstance(value, str):
        fail(path, f"{value!r} is not a text")


def choice(*known):
    def read(path, value):
        if not isinstance(value, str) or value not in known:
            fail(path, f"{value!r} is not one of " + ", ".join(known))

    return read


def array(read_one, most=None):
    def read(path, value):
        if not isinstance(value, list) or most is not None and len(value) > most:
            fail(
                path, f"{value!r} is not an array" + (f" of at most {most} values" if most else "")
            )
        for i, one in enumerate(value):
            read_one(f"{path}[{i}]", one)

    return read


def one_or_array(read_one):
    """A number, or one for each target."""
    many = array(read_one, 64)

    def read(path, value):
        (many if isinstance(value, list) else read_one)(path, value)

    return read


def or_null(read_one):
    def read(path, value):
        if value is not None:
            read_one(path, value)

    return read


def anything(path, value):
    """A value that its reader checks."""


def objects(required, optional=None):
    """An object with these keys and no others."""
    known = {**required, **(optional or {})}

    def read(path, value):
        if not isinstance(value, dict):
            fail(path, f"{value!r} is not an object")
        inside = path + "." if path else ""
        for key in value:
            if key not in known:
                fail(inside + key, "unknown key")
        for key in required:
            if key not in value:
                fail(inside + key, "missing")
        for key, one in value.items():
            known[key](inside + key, one)

    return read


def variants(**kinds):
    """An object whose `kind` says which other keys it has."""

    def read(path, value):
        if not isinstance(value, dict) or "kind" not in value:
            fail(path + ".kind", "missing")
        choice(*kinds)(path + ".kind", value["kind"])
        kinds[value["kind"]](path, value)

    return read


def untrained(path, value):
    fail(path + ".kind", f"{value['kind']!r} is known to the format but not to this trainer")


def no_tokens(path, value):
    if value is not None:
        fail(path, "feature tokens are known to the format but not to this trainer; use null")

# Readers that several parts share -----------------------------------------------------------------

SIZE = integer(1, 16384)
HIDDEN = array(SIZE, 8)
ACTIVATION = choice("relu", "gelu", "gelu-tanh")
KIND = {"kind": anything}

linear = objects(KIND)
mlp = objects({**KIND, "hidden": HIDDEN})
