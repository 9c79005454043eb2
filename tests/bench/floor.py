"""What does this machine commit of the same rows, with nothing else to do?

The floor of intake: the rows that alarms leave in the four tables which every alarm reaches
(documents, alarms, alarm_reports, findings), indexes included, in batches with a durable commit
each, through the bare driver.  No parsing, no rules, no rollups, no HTTP.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

TABLES = ("documents", "alarms", "alarm_reports", "findings")
Rows = dict[str, list[tuple[Any, ...]]]


def rows_of(database: Path) -> tuple[Rows, list[str]]:
    """Read the rows that a run left behind, and the statements that make their tables."""
    with closing(sqlite3.connect(database)) as source:
        made = [
            row[0]
            for row in source.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name IN (?, ?, ?, ?)"
                " ORDER BY type DESC",
                TABLES,
            )
        ]
        # The table names are our own.
        rows = {name: source.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}
    return rows, made


def sqlite_rate(rows: Rows, made: Sequence[str], file: Path, batch: int) -> float:
    """Commit the rows into a fresh file; give alarms a second."""
    with closing(sqlite3.connect(file, isolation_level=None)) as into:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536"):
            into.execute(f"PRAGMA {pragma}")
        for statement in made:
            into.execute(statement)
        began = time.perf_counter()
        for start in range(0, len(rows["alarms"]), batch):
            into.execute("BEGIN IMMEDIATE")
            for name, those in _slices(rows, start, batch):
                marks = ", ".join("?" * len(those[0]))
                into.executemany(f"INSERT INTO {name} VALUES ({marks})", those)
            into.execute("COMMIT")
        return len(rows["alarms"]) / (time.perf_counter() - began)


def postgres_rate(rows: Rows, url: str, batch: int) -> float:
    """Commit the rows into a migrated, empty database; give alarms a second."""
    parsed = make_url(url)
    host, name = str(parsed.query["host"]), parsed.database
    with psycopg.connect(host=host, dbname=name, user=parsed.username) as into:
        booleans = _booleans(into)
        began = time.perf_counter()
        for start in range(0, len(rows["alarms"]), batch):
            for table, those in _slices(rows, start, batch):
                marks = ", ".join(["%s"] * len(those[0]))
                told = [_typed(row, booleans[table]) for row in those]
                with into.cursor() as cursor:
                    cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", told)
            into.commit()
        return len(rows["alarms"]) / (time.perf_counter() - began)


def _slices(rows: Rows, start: int, batch: int) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """Cut the same share out of every table: as many commits for each."""
    alarms = len(rows["alarms"])
    cut = []
    for name in TABLES:
        all_rows = rows[name]
        first = len(all_rows) * start // alarms
        last = len(all_rows) * min(start + batch, alarms) // alarms
        if last > first:
            cut.append((name, all_rows[first:last]))
    return cut


def _booleans(connection: psycopg.Connection[Any]) -> dict[str, set[int]]:
    """Find the places of boolean columns, which SQLite keeps as numbers."""
    found = {}
    for table in TABLES:
        rows = connection.execute(
            "SELECT ordinal_position - 1 FROM information_schema.columns"
            " WHERE table_name = %s AND data_type = 'boolean'",
            (table,),
        ).fetchall()
        found[table] = {row[0] for row in rows}
    return found


def _typed(row: tuple[Any, ...], booleans: set[int]) -> tuple[Any, ...]:
    return tuple(bool(cell) if place in booleans else cell for place, cell in enumerate(row))
