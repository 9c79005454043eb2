"""Which signs say that something other than single machines is at fault?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.tables import alarms, attempts, cases, findings, incidents, proposals, rank_maps


@dataclass(frozen=True, slots=True)
class NamedAtOnce:
    """One alarm with the machines that it names; `of` is None while no rank map says how many."""

    alarm_id: int
    step: int
    nodes: int
    of: int | None
    received_at: datetime


@dataclass(frozen=True, slots=True)
class OneDigest:
    """One code digest with the open cases behind it."""

    digest: str
    cases: int
    newest_at: datetime


def named_at_once(
    connection: Connection, since: datetime, at_least: int
) -> tuple[NamedAtOnce, ...]:
    """List alarms received since a time that name at least so many nodes."""
    nodes = sa.func.count(sa.distinct(findings.c.node_id))
    query = (
        sa.select(alarms.c.id, alarms.c.step, nodes, rank_maps.c.nodes, alarms.c.received_at)
        .select_from(
            alarms.join(findings, findings.c.alarm_id == alarms.c.id)
            .outerjoin(attempts, attempts.c.id == alarms.c.attempt_id)
            .outerjoin(rank_maps, rank_maps.c.id == attempts.c.rank_map_id)
        )
        .where(
            alarms.c.received_at > since,
            findings.c.rank.is_not(None),
            findings.c.node_id.is_not(None),
        )
        .group_by(alarms.c.id, alarms.c.step, rank_maps.c.nodes, alarms.c.received_at)
        .having(nodes >= at_least)
    )
    return tuple(NamedAtOnce(*row) for row in connection.execute(query))


def digests(connection: Connection, since: datetime, at_least: int) -> tuple[OneDigest, ...]:
    """List code digests with at least so many open cases that were opened since a time."""
    number = sa.func.count(sa.distinct(incidents.c.case_id))
    newest = sa.func.max(sa.type_coerce(cases.c.opened_at, sa.BigInteger))
    query = (
        sa.select(incidents.c.code_digest, number, sa.type_coerce(newest, cases.c.opened_at.type))
        .join(cases, cases.c.id == incidents.c.case_id)
        .where(
            cases.c.status == "open",
            cases.c.opened_at > since,
            incidents.c.code_digest.is_not(None),
        )
        .group_by(incidents.c.code_digest)
        .having(number >= at_least)
        .order_by(incidents.c.code_digest)
    )
    return tuple(OneDigest(*row) for row in connection.execute(query))


def cordoned_nodes(connection: Connection, since: datetime) -> tuple[int, int | None]:
    """Count nodes whose cordon was proposed or approved since a time; also when the newest was.

    The time is in microseconds; None: there is none.
    """
    key = proposals.c.cluster + "/" + sa.func.coalesce(proposals.c.node_name, "")
    newest = sa.func.max(
        sa.case(
            (proposals.c.decided_at > since, sa.type_coerce(proposals.c.decided_at, sa.BigInteger)),
            else_=sa.type_coerce(proposals.c.created_at, sa.BigInteger),
        )
    )
    query = sa.select(sa.func.count(sa.distinct(key)), newest).where(
        proposals.c.action == "cordon",
        proposals.c.node_name.is_not(None),
        sa.or_(
            proposals.c.created_at > since,
            sa.and_(
                proposals.c.decided_at > since,
                proposals.c.status.not_in(("rejected", "expired", "superseded")),
            ),
        ),
    )
    row = connection.execute(query).one()
    return int(row[0]), None if row[1] is None else int(row[1])


def as_mark(at: datetime) -> int:
    """Give the place of a sign in time, in whole microseconds."""
    return micros(at)
