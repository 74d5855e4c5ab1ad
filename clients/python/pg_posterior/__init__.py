# SPDX-License-Identifier: PostgreSQL
"""Predictive distributions of the PostgreSQL extension pg_posterior as Python objects.

    import psycopg, pg_posterior
    with psycopg.connect() as connection:
        pg_posterior.register(connection)
        d = connection.execute("SELECT posterior.normal(0, 1)").fetchone()[0]
        d.interval(0.9)
"""
from .distribution import Bars, Categorical, Distribution, Mixture, Normal, Quantiles
from .distribution import from_bytes, from_json, parse
from .drivers import columns, register, sqlalchemy_type

__all__ = [
    "Bars", "Categorical", "Distribution", "Mixture", "Normal", "Quantiles", "columns",
    "from_bytes", "from_json", "parse", "register", "sqlalchemy_type"
]
