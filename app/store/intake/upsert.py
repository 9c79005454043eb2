"""How are many rows inserted or merged with one prepared statement?

The intake's hot path: plain values (times already in microseconds), statements compiled once for a
table and dialect, rows handed to the driver in one call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

Merge = Literal["set", "add", "max", "min", "fill", "or", "newest"]
# set: the new value; add: the sum; fill: the new value where there was none;
# or: true once true; max and min: ignoring NULL; newest: the new value, unless it is NULL or its
# row's last_alarm_at is older than the old one's.

# SQLite takes 32,766 parameters in a statement.
CHUNK = 5_000


def insert(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that must be new."""
    _run(connection, table, rows, None)


def insert_plain(
    connection: Connection,
    table: sa.Table,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert rows that must be new, given as plain tuples in the order of the columns."""
    if rows:
        statement = _statement(table.name, _key(table), columns, _mark(connection), None)
        connection.exec_driver_sql(statement, list(rows))


def insert_new(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, leaving those alone whose key is there."""
    _run(connection, table, rows, ())


def merge(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    how: Mapping[str, Merge],
) -> None:
    """Insert rows; where the primary key is there, merge the columns named in `how`."""
    # In one order for all processes, so that two of them cannot wait for each other.
    ordered = sorted(rows, key=itemgetter(*_key(table)))
    _run(connection, table, ordered, tuple(sorted(how.items())))


def _run(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    how: tuple[tuple[str, Merge], ...] | None,
) -> None:
    if not rows:
        return
    columns = tuple(rows[0])
    statement = _statement(table.name, _key(table), columns, _mark(connection), how)
    connection.exec_driver_sql(statement, list(map(itemgetter(*columns), rows)))


def _mark(connection: Connection) -> str:
    return "?" if connection.dialect.name == "sqlite" else "%s"


@cache
def _key(table: sa.Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key)


@lru_cache(maxsize=256)
def _statement(
    table: str,
    key: tuple[str, ...],
    columns: tuple[str, ...],
    mark: str,
    how: tuple[tuple[str, Merge], ...] | None,
) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join([mark] * len(columns))
    # Names come from our own tables, never from a document.
    statement = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'  # noqa: S608
    if how is None:
        return statement
    keys = ", ".join(f'"{name}"' for name in key)
    conflict = f" ON CONFLICT ({keys}) DO "
    if not how:
        return statement + conflict + "NOTHING"
    sets = ", ".join(f'"{column}" = {_merged(table, column, kind)}' for column, kind in how)
    return statement + conflict + "UPDATE SET " + sets


def _merged(table: str, column: str, kind: Merge) -> str:
    new, old = f'excluded."{column}"', f'"{table}"."{column}"'
    if kind == "set":
        return new
    if kind == "add":
        return f"{old} + {new}"
    if kind == "fill":
        return f"COALESCE({old}, {new})"
    if kind == "or":
        return f"({old} OR {new})"
    if kind == "newest":
        newer = f'excluded."last_alarm_at" >= "{table}"."last_alarm_at"'
        return f"CASE WHEN {newer} AND {new} IS NOT NULL THEN {new} ELSE {old} END"
    sign = ">" if kind == "max" else "<"
    return f"CASE WHEN {old} IS NULL OR {new} {sign} {old} THEN {new} ELSE {old} END"


def chunks(values: Iterable[Any], size: int = CHUNK) -> Iterable[list[Any]]:
    """Cut values into lists that fit one statement's parameters."""
    chunk: list[Any] = []
    for value in values:
        chunk.append(value)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def next_ids(connection: Connection, table: sa.Table, count: int) -> range | list[int]:
    """Reserve ids of an append-only table, so that rows can be inserted in one call.

    SQLite: the writing transaction holds the only lock, so the largest id is known.
    PostgreSQL: from the column's own sequence.
    """
    if connection.dialect.name == "sqlite":
        newest = f'SELECT max("id") FROM "{table.name}"'  # noqa: S608 - our own table's name
        last = connection.exec_driver_sql(newest).scalar() or 0
        return range(last + 1, last + 1 + count)
    sequence = connection.execute(
        sa.text("SELECT pg_get_serial_sequence(:table, 'id')"), {"table": table.name}
    ).scalar_one()
    rows = connection.execute(
        sa.text("SELECT nextval(CAST(:sequence AS regclass)) FROM generate_series(1, :count)"),
        {"sequence": sequence, "count": count},
    )
    return [row[0] for row in rows]
