"""How are the rows of many keys read with one prepared statement?

The intake asks for the rows of a group's documents several times a transaction.  One statement,
whatever the number of keys, is prepared once; a list of parameters of varying length never is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def rows_of_keys(
    connection: Connection,
    table: sa.Table,
    names: tuple[str, ...],
    keys: Iterable[int | str],
    key: str = "id",
    within: tuple[str, str] | None = None,
) -> list[Any]:
    """Read columns of the rows whose key is among the keys, as stored: times in microseconds.

    `within` names a column that an index has before the key, and the value it must have.
    """
    wanted = sorted(set(keys))
    if not wanted:
        return []
    sqlite = connection.dialect.name == "sqlite"
    column, value = within or (None, None)
    statement = _statement(table.name, names, key, column, sqlite)
    given: Any = json.dumps(wanted) if sqlite else wanted
    parameters = (given,) if within is None else (given, value)
    return list(connection.exec_driver_sql(statement, parameters))


@lru_cache(maxsize=64)
def _statement(
    table: str, names: tuple[str, ...], key: str, within: str | None, sqlite: bool
) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    among = "IN (SELECT value FROM json_each(?))" if sqlite else "= ANY(%s)"
    # Names come from our own tables, never from a document.
    statement = f'SELECT {columns} FROM "{table}" WHERE "{key}" {among}'  # noqa: S608
    if within is None:
        return statement
    return f'{statement} AND "{within}" = {"?" if sqlite else "%s"}'
