# SPDX-License-Identifier: PostgreSQL
"""Adapters: psycopg 3 in text and binary, an SQLAlchemy type, columns of numbers for data frames.
"""
from . import distribution as _distribution


def register(connection):
    """Have a psycopg 3 connection (or cursor) return distributions as objects, in both formats."""
    from psycopg.adapt import Loader
    from psycopg.pq import Format
    from psycopg.types import TypeInfo

    info = TypeInfo.fetch(connection, "posterior.distribution")
    if info is None:
        raise LookupError(
            "the database has no type posterior.distribution: CREATE EXTENSION pg_posterior")

    class TextLoader(Loader):
        def load(self, data):
            return _distribution.parse(bytes(data).decode())

    class BinaryLoader(Loader):
        format = Format.BINARY

        def load(self, data):
            return _distribution.from_bytes(data)

    info.register(connection)
    connection.adapters.register_loader(info.oid, TextLoader)
    connection.adapters.register_loader(info.oid, BinaryLoader)


def sqlalchemy_type():
    """An SQLAlchemy type for columns of distributions."""
    from sqlalchemy.types import UserDefinedType

    class DistributionType(UserDefinedType):
        cache_ok = True

        def get_col_spec(self, **_):
            return "posterior.distribution"

        def result_processor(self, dialect, coltype):
            return lambda value: _distribution.parse(value) if isinstance(value, str) else value

        def bind_processor(self, dialect):
            return lambda value: None if value is None else repr(value)

    return DistributionType


def columns(distributions, levels=(0.05, 0.5, 0.95)):
    """Columns of means, standard deviations and quantiles: a dict that pandas.DataFrame and
    pyarrow.table take."""
    known = [d for d in distributions]
    result = {"mean": [None if d is None else d.mean() for d in known],
              "stddev": [None if d is None else d.std() for d in known]}
    for level in levels:
        result[f"q{level:g}"] = [None if d is None else d.ppf(level) for d in known]
    return result
