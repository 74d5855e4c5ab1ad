"""What real tables do to clean functions: noise, target warps, warped, categorical, constant,
repeated and missing columns.
"""
import torch

from .source import standardise


def noisy_target(s, f, x, least=0.01, most=1.5):
    """y [B, N]: f of unit scale plus noise of least to most standard deviations: Gaussian or
    Student-t noise, sometimes heteroscedastic, then warped or rounded.
    """
    tasks, rows = f.shape
    f = standardise(f)
    sd = s.log_uniform(least, most, tasks, 1) * ~s.coin(0.08, tasks, 1)
    sd = torch.where(s.coin(0.04, tasks, 1), torch.full_like(sd, 30.0), sd)    # nothing to learn
    noise = torch.where(s.coin(0.15, tasks, 1), s.student(3, tasks, rows), s.randn(tasks, rows))
    column = s.integers(0, x.shape[2] - 1, tasks, 1, 1).expand(-1, rows, -1)
    spread = torch.exp(s.uniform(-1, 1, tasks, 1) * x.gather(2, column)[..., 0].clamp(-3, 3))
    noise = noise * torch.where(s.coin(0.2, tasks, 1), spread, torch.ones_like(spread))
    y = standardise(f + sd * noise)
    kind = s.rand(tasks, 1)
    levels = s.integers(2, 12, tasks, 1)
    rounded = (y * levels / 4).round()
    # Half of the rounded targets keep a little spread, so that the head does not owe infinite
    # density.
    rounded = rounded + s.coin(0.5, tasks, 1) * 0.02 * s.randn(tasks, rows)
    strength = s.uniform(0.3, 1.0, tasks, 1)
    y = torch.where(kind < 0.08, torch.exp(strength * y.clamp(-6, 6)), y)
    y = torch.where((kind >= 0.08) & (kind < 0.14), torch.sinh(y.clamp(-6, 6) * strength), y)
    y = torch.where((kind >= 0.14) & (kind < 0.22), rounded, y)
    return y * (1 - 2 * s.coin(0.5, tasks, 1).float())


def warped_columns(s, x):
    """Skewed, rounded and heavy-tailed versions of some columns, outliers in a few."""
    tasks, rows, features = x.shape
    u = s.rand(tasks, 1, features)
    x = torch.where(u < 0.08, torch.exp(x.clamp(-6, 6)), x)
    x = torch.where((u >= 0.08) & (u < 0.14), x.sign() * x.square(), x)
    x = torch.where((u >= 0.14) & (u < 0.26),
                    (x * s.log_uniform(0.7, 8, tasks, 1, features)).round(), x)
    outlier = s.coin(0.01, tasks, rows, features) & s.coin(0.04, tasks, 1, features)
    return torch.where(outlier, x * s.log_uniform(5, 100, tasks, 1, features), x)


def dull_columns(s, x):
    """A few constant, repeated and pure-noise columns, never the first of a task."""
    tasks, rows, features = x.shape
    if features == 1:
        return x
    u = s.rand(tasks, 1, features)
    u[:, :, 0] = 1
    noise = s.randn(tasks, rows, features)
    x = torch.where(u < 0.02, torch.zeros_like(x), x)
    # Nearly constant: only a few rows differ.
    rare = s.coin(0.03, tasks, rows, features)
    x = torch.where((u >= 0.02) & (u < 0.04), noise * rare, x)
    other = s.integers(0, features - 1, tasks, 1, features)
    copy = x.gather(2, other.expand(-1, rows, -1))
    x = torch.where((u >= 0.04) & (u < 0.07), copy, x)
    return torch.where((u >= 0.07) & (u < 0.12), noise, x)


def categories(s, x, already):
    """Cut some columns into 2 to 20 levels, most with scrambled identities; returns (x, categorical
    [B, F]).

    Columns in `already` [B, F] are categorical from their family and stay as they are.
    """
    tasks, rows, features = x.shape
    chosen = s.coin(0.5 * s.rand(tasks, 1) * s.coin(0.6, tasks, 1), tasks, features) & ~already
    levels = s.log_uniform(2, 20.99, tasks, 1, features).floor()
    # A Gaussian column cut at random places of its range has unequal level sizes.
    edges = s.randn(tasks, 20, features).sort(1).values
    used = torch.arange(20, device=s.device)[:, None] < levels - 1
    place = standardise(x)
    level = torch.zeros_like(x)
    for j in range(20):
        level += (place > edges[:, j:j + 1]) & used[:, j:j + 1]
    scramble = s.order(tasks, features, 21).transpose(1, 2)
    scrambled = scramble.gather(1, level.long()).to(x.dtype)
    level = torch.where(s.coin(0.6, tasks, 1, features), scrambled, level)
    # Some categorical columns are handed over as numbers, as many real tables do.
    flagged = chosen & s.coin(0.8, tasks, features)
    return torch.where(chosen[:, None], level, x), flagged | already


def missing_cells(s, x, y, share=0.35):
    """Cells missing in `share` of the tasks: at random, or more often where the column or the
    target is large.
    """
    tasks, rows, features = x.shape
    some = s.coin(share, tasks, 1)
    columns = s.coin(s.rand(tasks, 1), tasks, features) & some
    rate = s.uniform(0, 0.4, tasks, 1, features) * columns[:, None]
    cause = torch.where(s.coin(0.5, tasks, 1, features), standardise(x), standardise(y)[..., None])
    informative = s.coin(0.1, tasks, 1, features)
    probability = torch.where(informative, rate * 2 * torch.sigmoid(2 * cause), rate)
    return s.rand(tasks, rows, features) < probability


def absent_later(s, x, share):
    """Cells [B, N, F] that are missing from some row on in `share` of the tasks, where none was
    before: all of a column or some.
    """
    tasks, rows, features = x.shape
    some = s.coin(share, tasks, 1, 1)
    column = s.coin(s.rand(tasks, 1, 1), tasks, 1, features) & some
    rate = torch.where(s.coin(0.3, tasks, 1, features), torch.ones_like(x[:, :1]),
                       s.rand(tasks, 1, features))
    late = torch.arange(rows, device=x.device)[:, None] >= rows * s.uniform(0.2, 1.0, tasks, 1, 1)
    return column & late & (s.rand(tasks, rows, features) < rate)


def drift(s, x):
    """A slow shift of a few columns along the row index in some tasks, so that frozen statistics go
    stale.
    """
    tasks, rows, features = x.shape
    slope = (s.randn(tasks, 1, features) * s.coin(0.3, tasks, 1, features)
             * s.coin(0.08, tasks, 1, 1))
    return x + slope * torch.linspace(0, 1, rows, device=x.device)[:, None]


def broken(s, y, share):
    """Targets y [B, N], in that share of tasks of another relation from some row on: another level,
    the other sign, another size, or nothing but noise.
    """
    tasks, rows = y.shape
    later = torch.arange(rows, device=y.device) >= s.uniform(0.25, 1, tasks, 1) * rows
    mean, sd = y.mean(1, keepdim=True), y.std(1, keepdim=True)
    noise = y.gather(1, s.rand(tasks, rows).argsort(1))
    kinds = torch.stack([y + 3 * s.randn(tasks, 1) * sd, 2 * mean - y,
                         mean + s.log_uniform(0.2, 5, tasks, 1) * (y - mean), noise], 2)
    kind = s.integers(0, kinds.shape[2] - 1, tasks, 1, 1).expand(-1, rows, -1)
    return torch.where(later & s.coin(share, tasks, 1), kinds.gather(2, kind)[..., 0], y)
