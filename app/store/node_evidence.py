"""Which further evidence about machines waits to be collected, who takes it, what became of it?

One row is one machine over one time, its agent's log or the node itself. However many alarms ask
for it, it is one row and is collected once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.intake.upsert import chunks, insert_new
from app.store.tables import node_evidence, node_evidence_wants, telemetry_asks

Kind = Literal["log", "node"]
KINDS: tuple[Kind, ...] = ("node", "log")
"""The node first: its labels say which group's log to look in."""
OPEN = ("queued", "claimed")
ENDED_EMPTY = ("gone", "refused", "given_up")
NO_WAY = "no_way"
"""Nothing is configured to collect it with, or the machine is not known well enough."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that evidence is wanted of; name or instance id may be unknown, not both."""

    node_id: int
    cluster: str
    node: str | None
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row as it stands; see the table for the meaning of each column."""

    id: int
    cluster: str
    node_id: int
    node: str | None
    instance_id: str | None
    kind: Kind
    start: datetime
    end: datetime
    state: str
    asked_at: datetime
    tries: int
    read_at: datetime | None
    whole: bool
    cut: bool
    said: str | None

    @property
    def label(self) -> str:
        """Give what the machine is called."""
        return self.node or self.instance_id or "unnamed"


_TABLE = node_evidence
_COLUMNS = (
    _TABLE.c.id, _TABLE.c.cluster, _TABLE.c.node_id, _TABLE.c.node, _TABLE.c.instance_id,
    _TABLE.c.kind, _TABLE.c.start_at, _TABLE.c.end_at, _TABLE.c.state, _TABLE.c.asked_at,
    _TABLE.c.tries, _TABLE.c.read_at, _TABLE.c.whole, _TABLE.c.cut, _TABLE.c.said,
)  # fmt: skip


def want(
    connection: Connection,
    alarm_id: int,
    machines: Sequence[Machine],
    times: tuple[datetime, datetime],
    now: datetime,
) -> None:
    """Ask for the evidence of machines over a time for an alarm; a repeat asks for nothing."""
    at, start, end = micros(now), micros(times[0]), micros(times[1])
    rows = {}
    for one in machines:
        for kind in KINDS:
            row_id = ids.derive("node evidence", one.node_id, kind, start, end)
            rows[row_id] = {
                "id": row_id, "cluster": one.cluster, "node_id": one.node_id, "node": one.node,
                "instance_id": one.instance_id, "kind": kind, "start_at": start, "end_at": end,
                "state": "queued", "next_at": at, "asked_at": at, "tries": 0, "whole": False,
                "cut": False,
            }  # fmt: skip
    # In one order for all processes, so that two of them cannot wait for each other.
    ordered = sorted(rows)
    insert_new(connection, node_evidence, [rows[one] for one in ordered])
    links = [{"alarm_id": alarm_id, "evidence_id": one} for one in ordered]
    insert_new(connection, node_evidence_wants, links)


def is_due(connection: Connection, now: datetime, lease: timedelta) -> bool:
    """Tell whether there is anything to claim; nobody need write to find out that there is not."""
    query = sa.select(_TABLE.c.id).where(_due(now, lease)).limit(1)
    return connection.execute(query).first() is not None


def _due(now: datetime, lease: timedelta) -> sa.ColumnElement[bool]:
    """Say what is due. A refusal is, as a right is granted without anybody's telling us."""
    return sa.or_(
        sa.and_(_TABLE.c.state.in_(("queued", "refused")), _TABLE.c.next_at <= now),
        sa.and_(_TABLE.c.state == "claimed", _TABLE.c.claimed_at < now - lease),
    )


def claim(
    connection: Connection, worker: str, now: datetime, lease: timedelta, limit: int
) -> list[Evidence]:
    """Take what is due, and what a worker let its claim run out for; nodes before logs."""
    due = _due(now, lease)
    order = (_TABLE.c.next_at, _TABLE.c.kind.desc(), _TABLE.c.id)
    chosen = sa.select(_TABLE.c.id).where(due).order_by(*order).limit(limit)
    if connection.dialect.name != "sqlite":
        chosen = chosen.with_for_update(skip_locked=True)
    found = list(connection.execute(chosen).scalars())
    if not found:
        return []
    connection.execute(
        _TABLE.update()
        .where(_TABLE.c.id.in_(found))
        .values(state="claimed", claimed_by=worker, claimed_at=now, tries=_TABLE.c.tries + 1)
    )
    query = sa.select(*_COLUMNS).where(_TABLE.c.id.in_(found))
    return _read(connection, query.order_by(_TABLE.c.kind.desc(), _TABLE.c.id))


def renew(connection: Connection, row_id: int, worker: str, now: datetime) -> bool:
    """Hold on to a claim from now on; False where it is another worker's by now."""
    mine = _TABLE.c.id == row_id, _TABLE.c.state == "claimed", _TABLE.c.claimed_by == worker
    done = connection.execute(_TABLE.update().where(*mine).values(claimed_at=now))
    return done.rowcount == 1


def release(connection: Connection, worker: str) -> None:
    """Give back what a worker that stops did not get to."""
    connection.execute(
        _TABLE.update()
        .where(_TABLE.c.state == "claimed", _TABLE.c.claimed_by == worker)
        .values(state="queued", claimed_by=None, claimed_at=None)
    )


def settle(connection: Connection, row_id: int, worker: str, values: dict[str, Any]) -> bool:
    """Note what became of a claimed row; False where the claim was another worker's by then."""
    done = connection.execute(
        _TABLE.update()
        .where(
            _TABLE.c.id == row_id, _TABLE.c.state == "claimed", _TABLE.c.claimed_by == worker
        )
        .values(claimed_by=None, claimed_at=None, **values)
    )  # fmt: skip
    return done.rowcount == 1


def ask_again_in(
    connection: Connection, kind: Kind, clusters: Collection[str], now: datetime
) -> int:
    """Queue what there was no way to collect in clusters that are configured by now."""
    where = _TABLE.c.state == NO_WAY, _TABLE.c.kind == kind, _TABLE.c.cluster.in_(clusters)
    done = connection.execute(
        _TABLE.update().where(*where).values(state="queued", next_at=now, asked_at=now, tries=0)
    )
    return done.rowcount


def ask_again(connection: Connection, alarm_id: int, now: datetime) -> int:
    """Queue once more what came to nothing for an alarm; give how much."""
    wants = node_evidence_wants
    mine = sa.select(wants.c.evidence_id).where(wants.c.alarm_id == alarm_id)
    done = connection.execute(
        _TABLE.update()
        .where(_TABLE.c.id.in_(mine), _TABLE.c.state.in_(ENDED_EMPTY))
        .values(state="queued", next_at=now, asked_at=now, tries=0)
    )
    return done.rowcount


def askers(connection: Connection, row_ids: Collection[int]) -> list[int]:
    """List the alarms that ask for any of these rows."""
    wants = node_evidence_wants
    query = sa.select(wants.c.alarm_id).where(wants.c.evidence_id.in_(row_ids)).distinct()
    return sorted(connection.execute(query).scalars())


def sharing(connection: Connection, one: Evidence) -> list[int]:
    """List the rows in which a line that was kept for this one may count as well, it among them.

    A line is kept once for its machine; a state of a node for the question that read it.
    """
    if one.kind != "log":
        return [one.id]
    where = _TABLE.c.node_id == one.node_id, _TABLE.c.kind == one.kind
    query = sa.select(_TABLE.c.id).where(
        *where, _TABLE.c.start_at <= one.end, _TABLE.c.end_at >= one.start
    )
    return sorted(connection.execute(query).scalars())


def let_be_read(connection: Connection, alarm_ids: Collection[int]) -> None:
    """Let alarms wait to be read once more, so that one who ends before reading loses nothing."""
    for some in chunks(alarm_ids):
        connection.execute(
            telemetry_asks.update()
            .where(telemetry_asks.c.alarm_id.in_(some), telemetry_asks.c.state == "read")
            .values(state="waiting")
        )


def of_alarm(connection: Connection, alarm_id: int) -> list[Evidence]:
    """List what an alarm asks for, by machine."""
    wants = node_evidence_wants
    query = (
        sa.select(*_COLUMNS)
        .join(wants, wants.c.evidence_id == _TABLE.c.id)
        .where(wants.c.alarm_id == alarm_id)
        .order_by(_TABLE.c.node, _TABLE.c.node_id, _TABLE.c.kind.desc(), _TABLE.c.start_at)
    )
    return _read(connection, query)


def of_node(
    connection: Connection, node_id: int, start: datetime, end: datetime, limit: int
) -> list[Evidence]:
    """List what was asked for of a machine that touches a time, the newest first."""
    query = (
        sa.select(*_COLUMNS)
        .where(_TABLE.c.node_id == node_id, _TABLE.c.start_at < end, _TABLE.c.end_at > start)
        .order_by(_TABLE.c.start_at.desc(), _TABLE.c.kind.desc(), _TABLE.c.id)
        .limit(limit)
    )
    return _read(connection, query)


def _read(connection: Connection, query: sa.Select[Any]) -> list[Evidence]:
    return [Evidence(*tuple[Any, ...](row)) for row in connection.execute(query)]
