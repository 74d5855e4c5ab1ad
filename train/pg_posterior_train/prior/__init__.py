"""Priors: functions that draw whole batches of tasks, one file per family.

Every family takes a `torch.Generator` and works on the generator's device without a Python loop
over tasks. `sample(generator, tasks, rows, **options)` returns a `Tasks`.
"""
from . import classes, curves, feeder, fields, gp1d, grids, multisensory, numbers, tabular

PRIORS = {
    "classes": classes.sample,
    "curves": curves.sample,
    "feeder": feeder.sample,
    "fields": fields.sample,
    "gp1d": gp1d.sample,
    "images": grids.sample_images,
    "multisensory": multisensory.sample,
    "numbers": numbers.sample,
    "sir": grids.sample_sir,
    "tabular": tabular.sample,
}
