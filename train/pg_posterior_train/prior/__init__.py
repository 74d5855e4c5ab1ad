"""Priors: functions that draw whole batches of tasks, one file per family.

Every family takes a `torch.Generator` and works on the generator's device without a Python loop over tasks.
`sample(generator, tasks, rows, **options)` returns a `Tasks`.
"""
from . import classes, curves, gp1d, tabular

PRIORS = {"classes": classes.sample, "curves": curves.sample, "gp1d": gp1d.sample, "tabular": tabular.sample}
