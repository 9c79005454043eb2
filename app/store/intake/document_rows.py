"""How are raw documents and receipts of all kinds but alarms kept?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy.engine import Connection

from app.store.intake.lookup import rows_of_keys
from app.store.intake.upsert import insert, merge, next_ids
from app.store.tables import documents, receipts


def next_document_ids(connection: Connection, count: int) -> Sequence[int]:
    """Reserve ids for documents, in the order of the commit."""
    return next_ids(connection, documents, count)


def write_documents(
    connection: Connection, rows: Sequence[tuple[int, str, int, int | None, str]]
) -> None:
    """Insert documents given as (id, kind, received at in microseconds, token, text)."""
    names = ("id", "kind", "received_at", "token_id", "body")
    insert(connection, documents, [dict(zip(names, row, strict=True)) for row in rows])


def known_receipts(connection: Connection, receipt_ids: Iterable[int]) -> dict[int, int]:
    """Read how often these documents have come; those that never came are left out."""
    rows = rows_of_keys(connection, receipts, ("id", "received"), receipt_ids)
    return {row[0]: row[1] for row in rows}


def write_receipts(
    connection: Connection, rows: Sequence[tuple[int, str, int, int, int, int]]
) -> None:
    """Merge receipts given as (id, kind, received, first at, last at, document id)."""
    names = ("id", "kind", "received", "first_at", "last_at", "document_id")
    merge(
        connection,
        receipts,
        [dict(zip(names, row, strict=True)) for row in rows],
        {"received": "add", "first_at": "min", "last_at": "max"},
    )
