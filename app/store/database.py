"""How is the database reached, and what is it told at the start?"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Engine, make_url

# A sender's own time-out is longer than this, so that it hears why it has to come back.
SQLITE_BUSY_MS = 3_000


class StoreUnavailable(Exception):
    """The database is locked, full or away; nothing was kept, the caller may try again."""


def normalised(url: str) -> URL:
    """Pick psycopg 3 for plain postgresql addresses."""
    parsed = make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def connect(url: str, pool_size: int = 10) -> Engine:
    """Open an engine; SQLite gets WAL and full durability, and its folder is made."""
    parsed = normalised(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, pool_size)
    return sa.create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=10,
        pool_timeout=5,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 3, "options": "-c lock_timeout=5000"},
    )


def _sqlite(url: URL, pool_size: int) -> Engine:
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(
        url,
        poolclass=sa.pool.QueuePool,
        pool_size=pool_size,
        max_overflow=10,
        pool_timeout=5,
        connect_args={"check_same_thread": False, "timeout": SQLITE_BUSY_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def _at_connect(connection: sqlite3.Connection, _record: Any) -> None:
        # The driver's own transaction handling begins late and commits before DDL.
        connection.isolation_level = None
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            f"busy_timeout={SQLITE_BUSY_MS}",
            "foreign_keys=ON",
            "cache_size=-65536",
            "mmap_size=268435456",
            "temp_store=MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _at_begin(connection: sa.Connection) -> None:
        mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def writing(engine: Engine) -> Engine:
    """Give the engine for transactions that write: SQLite takes its lock at the start.

    A deferred transaction that reads first and writes later fails at once when another one wrote
    in between, however long the busy time-out is.
    """
    return engine.execution_options(sqlite_begin="IMMEDIATE")


def is_unavailable(error: BaseException) -> bool:
    """Tell whether a database error means: not now, try again."""
    if isinstance(error, sa.exc.OperationalError):
        return not _is_for_ever(error.orig)
    if isinstance(error, (sa.exc.InterfaceError, sa.exc.TimeoutError)):
        return True
    if isinstance(error, sa.exc.DBAPIError):
        return bool(error.connection_invalidated) or _is_no_database(error.orig)
    return isinstance(error, (sqlite3.OperationalError, StoreUnavailable)) or _is_no_database(error)


def _is_for_ever(error: BaseException | None) -> bool:
    """Tell whether PostgreSQL says that a limit of its own is passed: so it is at the next try."""
    return str(getattr(error, "sqlstate", None) or "").startswith("54")


def _is_no_database(error: BaseException | None) -> bool:
    """Tell whether SQLite says that its file is damaged: nothing can be kept, nothing is lost."""
    return isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorcode", 0) in (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    )
