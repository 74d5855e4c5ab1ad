"""A mixing function of 64-bit integers (docs/model-format.md, section 8, "Trees")."""
import numpy as np


def mix(z):
    """A hash of 64-bit integers."""
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return z ^ (z >> np.uint64(31))
