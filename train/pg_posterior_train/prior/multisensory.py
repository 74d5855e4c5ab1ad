"""The simulator of multisensory causal inference (Hassan et al. 2025, appendix D.3; Körding et al.
2007): where a participant says that a sound or a light was.

Columns: task (0: where was the light, 1: where was the sound), place of the sound, place of the
light, noise level of the light (0, 1, 2). The target is the answer, in degrees.
"""

import math

import torch

from ..tasks import numeric
from .source import Source

LAPSE, LARGEST = 0.02, 45.0
SOUNDS = 15.0


def truncated(s, mean, sd, tasks):
    """Gaussian numbers within two standard deviations of their mean, [B, 1]."""
    edge = math.erf(math.sqrt(2))
    z = math.sqrt(2) * torch.erfinv((2 * s.rand(tasks, 1) - 1).clamp(-0.999999, 0.999999) * edge)
    return mean + sd * z


def parameters(s, tasks):
    """The seven parameters of each participant, [B, 1] each, noise of the light [B, 3]."""
    low = truncated(s, 0.0, 1.5, tasks)
    middle = truncated(s, low + 1, 1.0, tasks)
    high = truncated(s, middle + 0.75, 0.5, tasks)
    light = torch.cat([low, middle, high], 1).exp()
    sound, prior, motor = (truncated(s, m, d, tasks).exp()
                           for m, d in ((1.75, 0.5), (2.5, 1.0), (0.0, 0.5)))
    same = truncated(s, 1.5, 1.5, tasks).sigmoid()
    return light, sound, prior, motor, same


def normal_log(x, variance):
    return -0.5 * (x.square() / variance + variance.log() + math.log(2 * math.pi))


def percept(own, other, own_sd, other_sd, prior, same):
    """Estimated place of the own source: the mean of the two hypotheses, weighted (eq. 7)."""
    a, b, p = own_sd.square(), other_sd.square(), prior.square()
    together = 1 / (1 / a + 1 / b + 1 / p)
    common = together * (own / a + other / b)
    apart = own * p / (a + p)
    # Densities of both percepts under one source and under two.
    det = a * b + a * p + b * p
    square = ((own - other).square() * p + own.square() * b + other.square() * a) / det
    one = -0.5 * (square + det.log()) - math.log(2 * math.pi)
    two = normal_log(own, a + p) + normal_log(other, b + p)
    weight = torch.sigmoid(same.logit() + one - two)
    return weight * common + (1 - weight) * apart


def sample(generator, tasks, rows, shared=None, recalibration=1.0):
    """A batch of participants; recalibration is the factor on sounds, 1 or 4/3 in the paper."""
    s = Source(generator)
    light_sd, sound_sd, prior, motor, same = parameters(s, tasks)
    kind = s.integers(0, 1, tasks, rows).float()
    sound = 5.0 * s.integers(-3, 3, tasks, rows).float()
    apart = s.coin(0.5, tasks, rows)
    light = torch.where(apart, s.uniform(-20.0, 20.0, tasks, rows), sound)
    level = s.integers(0, 2, tasks, rows)
    sd = light_sd.gather(1, level)
    heard = recalibration * (sound + sound_sd * s.randn(tasks, rows))
    seen = light + sd * s.randn(tasks, rows)
    hearing = (recalibration * sound_sd).expand_as(sd)
    place = torch.where(kind > 0.5, percept(heard, seen, hearing, sd, prior, same),
                        percept(seen, heard, sd, hearing, prior, same))
    answer = place + motor * s.randn(tasks, rows)
    lapse = s.coin(LAPSE, tasks, rows)
    answer = torch.where(lapse, s.uniform(-LARGEST, LARGEST, tasks, rows), answer)
    x = torch.stack([kind, sound / SOUNDS, light / 20.0, level.float()], -1)
    return numeric(x, answer)
