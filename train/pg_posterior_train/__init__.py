"""Training, export and evaluation of the models that pg_posterior serves.

The file format and the exact mathematics are in docs/model-format.md; this package is one way of
producing such files.
"""
