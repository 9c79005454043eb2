"""Which column types behave alike in SQLite and PostgreSQL?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Count the microseconds from 1970 to an aware datetime."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(count: int) -> datetime:
    """Turn microseconds since 1970 into an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=count)


class Instant(sa.types.TypeDecorator[datetime]):
    """A point in time, kept as microseconds since 1970 UTC in a 64-bit integer.

    SQLite has no time type and loses zones; one integer compares, indexes and bins the same way in
    both databases.
    """

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Refuse naive datetimes: a time without zone is a fault of ours, not of the sender."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime reached the database")
        return micros(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Give aware UTC datetimes back."""
        return None if value is None else moment(int(value))


# SQLite only counts rows up by itself in a column typed INTEGER.
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
