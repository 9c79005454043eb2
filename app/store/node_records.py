"""Which raw records about machines are kept, and how are they written and found?"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.intake.upsert import insert_new
from app.store.node_evidence import Evidence
from app.store.tables import node_records
from witness.rules.node_records import Record


@dataclass(frozen=True, slots=True)
class Raw:
    """One record to keep. `event_id` is the log service's name of a line; None for a node."""

    text: str
    at: datetime
    received_at: datetime | None = None
    stream: str | None = None
    event_id: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """One record as kept; `record` is what the rules read."""

    id: int
    evidence_id: int
    node_id: int
    record: Record
    at: datetime
    received_at: datetime | None
    kept_at: datetime
    stream: str | None
    event_id: str | None
    sha256: str


def pack(evidence: Evidence, found: Sequence[Raw]) -> list[dict[str, Any]]:
    """Compress records for `write`; no database is touched, so the writer need not wait.

    A line is the same by the log service's name of it, else by place, time and content; a node by
    its content within one question, so that two readings that differ are both kept.
    """
    rows = {}
    for one in found:
        data = one.text.encode("utf-8", "surrogatepass")
        sha256 = hashlib.sha256(data).hexdigest()
        name = (one.event_id or sha256, one.stream, micros(one.at))
        key = (evidence.id, sha256) if evidence.kind == "node" else name
        row_id = ids.derive("node record", evidence.node_id, evidence.kind, *key)
        rows[row_id] = {
            "id": row_id,
            "evidence_id": evidence.id,
            "node_id": evidence.node_id,
            "kind": evidence.kind,
            "at": micros(one.at),
            "received_at": None if one.received_at is None else micros(one.received_at),
            "stream": one.stream,
            "event_id": one.event_id,
            "other": one.other,
            "data": zlib.compress(data),
            "sha256": sha256,
        }
    return [rows[one] for one in sorted(rows)]


def write(connection: Connection, packed: Sequence[dict[str, Any]], now: datetime) -> int:
    """Keep records that are not there yet; give how many are new."""
    if not packed:
        return 0
    table = node_records
    evidence_ids = [one["id"] for one in packed]
    known = sa.select(sa.func.count()).where(table.c.id.in_(evidence_ids))
    before = int(connection.execute(known).scalar_one())
    insert_new(connection, table, [{**one, "kept_at": micros(now)} for one in packed])
    return len(packed) - before


def of_evidence(connection: Connection, rows: Collection[Evidence], limit: int) -> list[KeptRecord]:
    """Read the records of some questions: lines that lie in their time, nodes read for them.

    By time; the newest `limit`.
    """
    table = node_records
    which: list[sa.ColumnElement[bool]] = [
        table.c.evidence_id.in_([one.id for one in rows if one.kind == "node"])
    ]
    logs = {(one.node_id, one.start, one.end) for one in rows if one.kind == "log"}
    which += [
        sa.and_(table.c.node_id == node_id, table.c.kind == "log", table.c.at.between(start, end))
        for node_id, start, end in sorted(logs)
    ]
    query = sa.select(table).where(sa.or_(*which)).order_by(table.c.at.desc(), table.c.id)
    return [_kept(row) for row in connection.execute(query.limit(limit))][::-1]


def newest_node(connection: Connection, node_id: int) -> KeptRecord | None:
    """Read the newest kept state of a node, None where none was read."""
    table = node_records
    query = (
        sa.select(table)
        .where(table.c.node_id == node_id, table.c.kind == "node")
        .order_by(table.c.at.desc(), table.c.id)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else _kept(row)


def by_id(connection: Connection, record_id: int) -> KeptRecord | None:
    """Read one record."""
    row = connection.execute(sa.select(node_records).where(node_records.c.id == record_id)).first()
    return None if row is None else _kept(row)


def _kept(row: Any) -> KeptRecord:
    text = zlib.decompress(row.data).decode("utf-8", "surrogatepass")
    received = None if row.received_at is None else row.received_at.timestamp()
    return KeptRecord(
        row.id,
        row.evidence_id,
        row.node_id,
        Record(row.kind, text, row.at.timestamp(), received, row.other),
        row.at,
        row.received_at,
        row.kept_at,
        row.stream,
        row.event_id,
        row.sha256,
    )
