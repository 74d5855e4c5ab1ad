"""Voltages of the 33-bus distribution feeder of Baran and Wu 1989 under random loads (the
power-flow task of Sharma et al. 2025): 64 columns (active and reactive load of 32 buses, relative
to nominal), 32 targets (voltages in per unit) or one of them.
"""

import torch

from ..tasks import numeric
from .source import Source

# from, to (buses count from 1), resistance and reactance in ohm, load at `to` in kW and kvar
LINES = (
    (1, 2, 0.0922, 0.0470, 100, 60), (2, 3, 0.4930, 0.2511, 90, 40),
    (3, 4, 0.3660, 0.1864, 120, 80), (4, 5, 0.3811, 0.1941, 60, 30),
    (5, 6, 0.8190, 0.7070, 60, 20), (6, 7, 0.1872, 0.6188, 200, 100),
    (7, 8, 0.7114, 0.2351, 200, 100), (8, 9, 1.0300, 0.7400, 60, 20),
    (9, 10, 1.0440, 0.7400, 60, 20), (10, 11, 0.1966, 0.0650, 45, 30),
    (11, 12, 0.3744, 0.1238, 60, 35), (12, 13, 1.4680, 1.1550, 60, 35),
    (13, 14, 0.5416, 0.7129, 120, 80), (14, 15, 0.5910, 0.5260, 60, 10),
    (15, 16, 0.7463, 0.5450, 60, 20), (16, 17, 1.2890, 1.7210, 60, 20),
    (17, 18, 0.7320, 0.5740, 90, 40), (2, 19, 0.1640, 0.1565, 90, 40),
    (19, 20, 1.5042, 1.3554, 90, 40), (20, 21, 0.4095, 0.4784, 90, 40),
    (21, 22, 0.7089, 0.9373, 90, 40), (3, 23, 0.4512, 0.3083, 90, 50),
    (23, 24, 0.8980, 0.7091, 420, 200), (24, 25, 0.8960, 0.7011, 420, 200),
    (6, 26, 0.2030, 0.1034, 60, 25), (26, 27, 0.2842, 0.1447, 60, 25),
    (27, 28, 1.0590, 0.9337, 60, 20), (28, 29, 0.8042, 0.7006, 120, 70),
    (29, 30, 0.5075, 0.2585, 200, 600), (30, 31, 0.9744, 0.9630, 150, 70),
    (31, 32, 0.3105, 0.3619, 210, 100), (32, 33, 0.3410, 0.5302, 60, 40),
)
KILOVOLT, MEGAVA = 12.66, 10.0
SWEEPS = 12


def below(device):
    """Which line carries the load of which bus, [32 lines, 32 loads]."""
    count = len(LINES)
    carried = torch.zeros(count, count, dtype=torch.complex128, device=device)
    line_to = {to: i for i, (_, to, *_) in enumerate(LINES)}
    for load, (_, bus, *_) in enumerate(LINES):
        while bus != 1:
            carried[line_to[bus], load] = 1
            bus = LINES[line_to[bus]][0]
    return carried


def voltages(active, reactive):
    """Per-unit magnitudes [..., 32] of buses 2 to 33 for loads [..., 32] relative to nominal:
    current sweeps up and down the tree.
    """
    table = torch.tensor(LINES, dtype=torch.float64, device=active.device)
    ohm = KILOVOLT**2 / MEGAVA
    impedance = torch.complex(table[:, 2], table[:, 3]) / ohm
    nominal = torch.complex(table[:, 4], table[:, 5]) / (1000 * MEGAVA)
    power = torch.complex(active.double() * nominal.real, reactive.double() * nominal.imag)
    carried = below(active.device)
    v = torch.ones_like(power)
    for _ in range(SWEEPS):
        current = (power / v).conj() @ carried.T
        v = 1 - (current * impedance) @ carried
    return v.abs()


def sample(generator, tasks, rows, shared=None, spread=0.5, bus=None):
    """A batch of tasks; spread: loads are uniform within that share of nominal, a number or a pair
    between which each task has its own; bus: 2 to 33, or None for all voltages.
    """
    s = Source(generator)
    low, high = (spread, spread) if isinstance(spread, (int, float)) else spread
    width = s.uniform(low, high, tasks, 1, 1)
    x = 1 + width * s.uniform(-1.0, 1.0, tasks, rows, 64)
    y = voltages(x[..., :32], x[..., 32:]).float()
    return numeric(x, y if bus is None else y[..., bus - 2])
