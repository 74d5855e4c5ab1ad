"""Tables with classes: the tabular families with their functions cut into classes, and clusters of
rows that are classes.

Targets are class indices 0 … 9. Classes differ in size, labels are sometimes wrong, and codes say
nothing about any order in most tasks.
"""
from collections import Counter

import torch

from ..tasks import Tasks, concatenate
from . import corrupt, panel, scm, tabular, timeseries
from .inputs import collinear, draw_inputs, relevance
from .source import Source, standardise

MOST = 10
LATENTS = 3
WEIGHTS = {"scm": 0.23, "clusters": 0.26, "trees": 0.13, "linear": 0.18, "gp": 0.08,
           "additive": 0.06, "panel": 0.04, "timeseries": 0.02}
NUMBERS = (0.36, 0.20, 0.12, 0.08, 0.06, 0.05, 0.04, 0.04, 0.05)    # of 2 … 10 classes


def class_numbers(s, tasks):
    """How many classes each task has, [B, 1]."""
    weight = torch.tensor(NUMBERS, device=s.device)
    return 2 + torch.multinomial(weight, tasks, replacement=True, generator=s.generator)[:, None]


def class_shares(s, classes):
    """Shares [B, 10] of the classes, from equal to very unequal; 0 from `classes` [B, 1] on."""
    tasks = len(classes)
    spread = s.uniform(0, 1.5, tasks, 1) * s.coin(0.7, tasks, 1)
    logit = s.randn(tasks, MOST) * spread
    return logit.masked_fill(torch.arange(MOST, device=s.device) >= classes,
                             float("-inf")).softmax(1)


def cut(latent, share):
    """Classes [B, N] by the rank of one latent number [B, N], with these shares of the rows."""
    rank = latent.argsort(1).argsort(1).to(latent.dtype) / latent.shape[1]
    edges = share.cumsum(1)[:, :-1]
    return (rank[..., None] >= edges[:, None]).sum(-1)


def strongest(s, latents, share, classes):
    """Classes [B, N] by the largest of linear scores of the latent numbers [B, N, J], often at
    random (softmax).
    """
    tasks, rows, count = latents.shape
    score = standardise(latents) @ s.randn(tasks, count, MOST)
    # Larger classes have larger scores throughout.
    score = score + (share.clamp_min(1e-3).log() - share.amax(1, keepdim=True).log())[:, None]
    gumbel = -(-s.rand(tasks, rows, MOST).clamp(1e-9, 1 - 1e-7).log()).log()
    temperature = s.log_uniform(0.03, 1.0, tasks, 1, 1) * s.coin(0.5, tasks, 1, 1)
    absent = torch.arange(MOST, device=s.device) >= classes
    return (score + temperature * gumbel).masked_fill(absent[:, None], float("-inf")).argmax(-1)


def clusters(s, tasks, rows, features, share):
    """Features [B, N, F] and classes [B, N]: every class is one to three clouds of rows."""
    y = torch.multinomial(share, rows, replacement=True, generator=s.generator)
    clouds = s.integers(1, 3, tasks, 1)
    member = y * 3 + (s.rand(tasks, rows) * clouds).long()
    weight = relevance(s, tasks, features)[:, None]
    separation = s.log_uniform(0.4, 6.0, tasks, 1, 1)
    # The clouds of one class lie near each other, or anywhere.
    centre = (s.randn(tasks, MOST, 1, features) + s.rand(tasks, 1, 1, 1) * 1.5
              * s.randn(tasks, MOST, 3, features))
    centre = centre.flatten(1, 2) * weight * separation
    # Equal or different widths, per class and column.
    width = torch.exp(0.5 * s.randn(tasks, MOST, features) * s.coin(0.5, tasks, 1, 1))
    noise = s.randn(tasks, rows, features)
    noise = torch.where(s.coin(0.4, tasks, 1, 1), standardise(collinear(s, noise)), noise)
    noise = torch.where(s.coin(0.1, tasks, 1, 1), s.student(3, tasks, rows, features), noise)
    x = (centre.gather(1, member[..., None].expand(-1, -1, features))
         + noise * width.gather(1, y[..., None].expand(-1, -1, features)))
    return standardise(x), y


def latent_numbers(s, family, tasks, rows, features):
    """Features [B, N, F], latent numbers [B, N, J], categorical columns and hidden cells."""
    categorical = torch.zeros(tasks, features, dtype=torch.bool, device=s.device)
    if family == "panel":
        x, f, categorical, hidden = panel.sample(s, tasks, rows, features)
        return x, f[..., None], categorical, hidden
    if family == "timeseries":
        x, f = timeseries.sample(s, tasks, rows, features)
        return x, f[..., None], categorical, None
    if family == "scm":
        x, f = scm.sample(s, tasks, rows, features + LATENTS - 1)
        return x[..., :features], torch.cat([f[..., None], x[..., features:]], 2), categorical, None
    x = corrupt.drift(s, draw_inputs(s, tasks, rows, features))
    weight, f = relevance(s, tasks, features), []
    for _ in range(LATENTS):
        f.append(tabular.FUNCTIONS[family](s, x, weight))
        # The latent numbers depend on the same columns, or each on its own.
        weight = torch.where(s.coin(0.5, tasks, 1), weight, relevance(s, tasks, features))
    return x, torch.stack(f, -1), categorical, None


def draw_classes(s, latents, classes, share):
    """Classes [B, N] from latent numbers: half by cutting one, half by competing scores."""
    tasks, rows, _ = latents.shape
    latents = standardise(latents)
    noise = s.log_uniform(0.01, 1.0, tasks, 1, 1) * s.coin(0.75, tasks, 1, 1)
    latents = latents + noise * s.randn(*latents.shape)
    by_score = s.coin(0.55, tasks, 1) & torch.tensor(latents.shape[2] > 1, device=s.device)
    y = torch.where(by_score, strongest(s, latents, share, classes), cut(latents[..., 0], share))
    wrong = s.coin(s.uniform(0, 0.25, tasks, 1) * s.coin(0.2, tasks, 1), tasks, rows)
    return torch.where(wrong, (s.rand(tasks, rows) * classes).long(), y)


def one_family(s, family, tasks, rows, features):
    """`tasks` corrupted tasks of one family."""
    classes = class_numbers(s, tasks)
    share = class_shares(s, classes)
    hidden, categorical = None, torch.zeros(tasks, features, dtype=torch.bool, device=s.device)
    if family == "clusters":
        x, y = clusters(s, tasks, rows, features, share)
        wrong = s.coin(s.uniform(0, 0.2, tasks, 1) * s.coin(0.15, tasks, 1), tasks, rows)
        y = torch.where(wrong, (s.rand(tasks, rows) * classes).long(), y)
    else:
        x, latents, categorical, hidden = latent_numbers(s, family, tasks, rows, features)
        y = draw_classes(s, latents, classes, share)
    missing = corrupt.missing_cells(s, x, y.to(x.dtype))
    if family != "panel":
        x = corrupt.dull_columns(s, corrupt.warped_columns(s, x))
        x, categorical = corrupt.categories(s, x, categorical)
    x = torch.where(missing, torch.full_like(x, float("nan")), x)
    if hidden is not None:
        x = torch.where(hidden, torch.full_like(x, float("nan")), x)
    # Codes: any of the ten, so that after renumbering no code means a rank; a fifth of the tasks
    # keep their order.
    code = torch.where(s.coin(0.8, tasks, 1), s.order(tasks, MOST),
                       torch.arange(MOST, device=s.device))
    column = s.order(tasks, features)
    x = x.gather(2, column[:, None].expand(-1, rows, -1))
    return Tasks(x, code.gather(1, y).to(x.dtype), categorical.gather(1, column))


def sample(generator, tasks, rows, shared, max_features=64, families=None):
    """A batch of tasks; `shared` decides the number of columns alike for all workers."""
    s = Source(generator)
    allowed = list(families or WEIGHTS)
    features = max(tabular.choose_features(shared, max_features), 2 if allowed == ["panel"] else 1)
    allowed = [f for f in allowed if features >= 2 or f != "panel"]
    weight = torch.tensor([WEIGHTS[f] for f in allowed], device=s.device)
    groups = -(-tasks // tabular.GROUP)
    picks = torch.multinomial(weight, groups, replacement=True, generator=generator).tolist()
    counts = Counter(picks)
    drawn = concatenate(
        [one_family(s, allowed[i], counts[i] * tabular.GROUP, rows, features)
         for i in sorted(counts)])
    mixed = torch.randperm(len(drawn.y), generator=generator, device=s.device)[:tasks]
    return Tasks(drawn.x[mixed].clamp(-1e6, 1e6), drawn.y[mixed], drawn.categorical[mixed])
