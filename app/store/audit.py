"""Who did what, when, on which evidence; and has anybody changed that since?

Every entry holds the hash of the one before and a hash over its own content, so a changed, removed
or inserted row breaks the chain from there on.  The chain alone cannot show that its newest entries
were cut off; whoever exports it and keeps the last hash can.

The hash is SHA-256 over the entry's exported JSON without `id` and `hash`, keys sorted, no spaces,
ASCII only: anybody can verify an export without this program.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.tables import audit_entries
from app.strict_json import strict

BEFORE_THE_FIRST = "0" * 64
# Any number of our own; only one transaction at a time may read the end of the chain and add to it.
_LOCK = 0x5117_A0D1
BATCH = 1_000


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
    hold_chain(connection)
    last = connection.execute(
        sa.select(audit_entries.c.hash).order_by(audit_entries.c.id.desc()).limit(1)
    ).scalar_one_or_none()
    row: dict[str, Any] = {
        "at": at,
        "actor": _storable(actor),
        "verb": verb,
        "summary": _storable(summary),
        "case_id": case_id,
        "proposal_id": proposal_id,
        "node_id": node_id,
        "job_id": job_id,
        "details": _canonical(strict(dict(details or {}))),
        "previous_hash": last or BEFORE_THE_FIRST,
    }
    row["hash"] = content_hash(exported(row))
    result = connection.execute(audit_entries.insert().values(row).returning(audit_entries.c.id))
    return int(result.scalar_one())


def hold_chain(connection: Connection) -> None:
    """Keep others from adding to the chain until the commit; a second call changes nothing."""
    if connection.dialect.name == "postgresql":
        # Two processes would both continue the same last entry.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def verify(connection: Connection) -> Verification:
    """Walk the whole chain; O(all entries), a thousand in memory at a time."""
    previous, read, after = BEFORE_THE_FIRST, 0, 0
    while True:
        rows = connection.execute(
            sa.select(audit_entries)
            .where(audit_entries.c.id > after)
            .order_by(audit_entries.c.id)
            .limit(BATCH)
        ).all()
        if not rows:
            return Verification(read, None, None, previous)
        for row in rows:
            read += 1
            after = row.id
            why = _misfit(row._asdict(), previous)
            if why is not None:
                return Verification(read, row.id, why, previous)
            previous = row.hash


def _misfit(row: Mapping[str, Any], previous: str) -> str | None:
    if row["previous_hash"] != previous:
        return "it does not continue the entry before it: one was removed, added or moved"
    try:
        fits = row["hash"] == content_hash(exported(row))
    except ValueError:  # details that are no JSON any more
        fits = False
    if not fits:
        return "its content is not what was hashed when it was written"
    return None


def exported(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give an entry's content as it is exported and hashed, without its id and hash."""
    return {
        "at": row["at"].astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": row["actor"],
        "verb": row["verb"],
        "summary": row["summary"],
        "case": _shown(row["case_id"]),
        "proposal": _shown(row["proposal_id"]),
        "node": _shown(row["node_id"]),
        "job": _shown(row["job_id"]),
        "details": json.loads(row["details"]),
        "previous_hash": row["previous_hash"],
    }


def as_exported(entry: Entry) -> dict[str, Any]:
    """Write an entry with its id and hash around the content that was hashed."""
    return {"id": str(entry.id), **exported(_as_row(entry)), "hash": entry.hash}


def _as_row(entry: Entry) -> dict[str, Any]:
    row = asdict(entry)
    row["details"] = json.dumps(dict(entry.details))
    return row


def content_hash(content: Mapping[str, Any]) -> str:
    """Hash the exported content."""
    return hashlib.sha256(_canonical(content).encode("ascii")).hexdigest()


def entry(row: Mapping[str, Any]) -> Entry:
    """Read a row; details that are no JSON any more are shown as they are."""
    values = dict(row)
    try:
        values["details"] = json.loads(values["details"])
    except ValueError:  # somebody changed it in the database; `verify` says where
        values["details"] = {"unreadable": values["details"]}
    return Entry(**values)


def _shown(row_id: int | None) -> str | None:
    return None if row_id is None else ids.show(row_id)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _storable(text: str) -> str:
    # Lone surrogates and NUL, which names from outside can hold, fit into no database.
    return text.replace("\0", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode()
