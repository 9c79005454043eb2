"""Who did what, when, on which evidence; and has anybody changed that since?

Every entry holds the hash of the one before and a hash over its own content, so a changed, removed
or inserted row breaks the chain from there on.  The chain cannot show that its newest entries were
cut off; whoever exports it and keeps the last hash can.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.tables import audit_entries

BEFORE_THE_FIRST = "0" * 64
# Any number of our own; only one transaction at a time may read the end of the chain and add to it.
_LOCK = 0x5117_A0D1
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit entry."""

    id: int
    at: datetime
    actor: str
    verb: str
    summary: str
    case_id: int | None
    proposal_id: int | None
    node_id: int | None
    job_id: int | None
    details: Mapping[str, Any]
    previous_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the chain found."""

    entries: int  # read, up to and including the first bad one
    first_bad: int | None  # id of the first entry that does not fit; None: all fit
    why: str | None
    last_hash: str  # of the last entry that fits


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are asked for; None and empty mean all."""

    actor: str = ""
    verb: str = ""  # a whole verb, or its beginning up to the dot
    text: str = ""  # somewhere in the summary
    since: datetime | None = None
    until: datetime | None = None
    case_id: int | None = None
    proposal_id: int | None = None
    node_id: int | None = None
    job_id: int | None = None


def append(  # noqa: PLR0913 -- what it is about is named by keywords only
    connection: Connection,
    actor: str,
    verb: str,
    summary: str,
    *,
    at: datetime,
    case_id: int | None = None,
    proposal_id: int | None = None,
    node_id: int | None = None,
    job_id: int | None = None,
    details: Mapping[str, Any] | None = None,
) -> int:
    """Add an entry at the end of the chain and return its id; call it inside `store.write`."""
    if connection.dialect.name == "postgresql":
        # Two processes would both continue the same last entry; held until the commit.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    last = connection.execute(
        sa.select(audit_entries.c.hash).order_by(audit_entries.c.id.desc()).limit(1)
    ).scalar_one_or_none()
    row: dict[str, Any] = {
        "at": at,
        "actor": actor,
        "verb": verb,
        "summary": summary,
        "case_id": case_id,
        "proposal_id": proposal_id,
        "node_id": node_id,
        "job_id": job_id,
        "details": _canonical(dict(details or {})),
        "previous_hash": last or BEFORE_THE_FIRST,
    }
    row["hash"] = _hash(row)
    result = connection.execute(audit_entries.insert().values(row).returning(audit_entries.c.id))
    return int(result.scalar_one())


def verify(connection: Connection) -> Verification:
    """Walk the whole chain; O(all entries), a thousand in memory at a time."""
    previous, read, after = BEFORE_THE_FIRST, 0, 0
    while True:
        rows = connection.execute(
            sa.select(audit_entries)
            .where(audit_entries.c.id > after)
            .order_by(audit_entries.c.id)
            .limit(_BATCH)
        ).all()
        if not rows:
            return Verification(read, None, None, previous)
        for row in rows:
            read += 1
            after = row.id
            why = _misfit(row._mapping, previous)
            if why is not None:
                return Verification(read, row.id, why, previous)
            previous = row.hash


def _misfit(row: Mapping[str, Any], previous: str) -> str | None:
    if row["previous_hash"] != previous:
        return "it does not continue the entry before it: one was removed, added or moved"
    if row["hash"] != _hash(row):
        return "its content is not what was hashed when it was written"
    return None


def count(connection: Connection) -> int:
    """Count all entries."""
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(audit_entries)).scalar_one()
    )


def page(
    connection: Connection, wanted: Filter, *, before: int | None, limit: int
) -> tuple[Entry, ...]:
    """List entries, the newest first, older than the entry `before`."""
    statement = _filtered(sa.select(audit_entries), wanted)
    if before is not None:
        statement = statement.where(audit_entries.c.id < before)
    statement = statement.order_by(audit_entries.c.id.desc()).limit(limit)
    return tuple(_entry(row._mapping) for row in connection.execute(statement))


def of_case(connection: Connection, case_id: int, limit: int = 200) -> tuple[Entry, ...]:
    """List what was done on a case, the newest first."""
    return page(connection, Filter(case_id=case_id), before=None, limit=limit)


def walk(connection: Connection, wanted: Filter) -> Iterator[Entry]:
    """Go through entries in the order of their writing, the true order, a batch at a time."""
    after = 0
    while True:
        statement = _filtered(sa.select(audit_entries), wanted)
        statement = statement.where(audit_entries.c.id > after)
        rows = connection.execute(statement.order_by(audit_entries.c.id).limit(_BATCH)).all()
        for row in rows:
            yield _entry(row._mapping)
        if len(rows) < _BATCH:
            return
        after = rows[-1].id


def _filtered(statement: sa.Select[Any], wanted: Filter) -> sa.Select[Any]:
    column = audit_entries.c
    if wanted.actor:
        statement = statement.where(column.actor == wanted.actor)
    if wanted.verb:
        statement = statement.where(
            sa.or_(
                column.verb == wanted.verb,
                column.verb.startswith(wanted.verb.rstrip(".") + ".", autoescape=True),
            )
        )
    if wanted.text:
        statement = statement.where(column.summary.icontains(wanted.text, autoescape=True))
    if wanted.since is not None:
        statement = statement.where(column.at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(column.at < wanted.until)
    for name in ("case_id", "proposal_id", "node_id", "job_id"):
        if (value := getattr(wanted, name)) is not None:
            statement = statement.where(column[name] == value)
    return statement


def _entry(row: Mapping[str, Any]) -> Entry:
    values = dict(row)
    values["details"] = json.loads(values["details"])
    return Entry(**values)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def _hash(row: Mapping[str, Any]) -> str:
    content = {
        name: row[name]
        for name in (
            "actor",
            "verb",
            "summary",
            "case_id",
            "proposal_id",
            "node_id",
            "job_id",
            "details",
            "previous_hash",
        )
    }
    content["at"] = micros(row["at"])
    return hashlib.sha256(_canonical(content).encode("ascii")).hexdigest()
