"""Which alarms and actions stand in a range, newest first, a page at a time?

Every read walks at most `SCAN` rows of an index and gives at most `limit` rows.  Where a filter
that no index serves leaves a page short, `reached` says how far back the walk came, so that the
reader can go on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import (
    alarms,
    audit_entries,
    cases,
    documents,
    findings,
    gpus,
    jobs,
    nodes,
)
from app.store.timeline_scope import (
    SCAN,
    Scope,
    at_column,
    id_column,
    names_nothing,
    newest,
    row_conditions,
)

DEVICES_SHOWN = 6
"""Findings read for one alarm; one that names half a job has thousands."""

Position = tuple[datetime, int]
"""Time and id of the last row that was shown or looked at."""


@dataclass(frozen=True, slots=True)
class AlarmRow:
    """One alarm as the timeline needs it."""

    id: int
    at: datetime
    family: str
    check: str
    step: int
    window_first: int | None
    window_last: int | None
    attempt_id: int | None
    job_id: int
    job: str
    namespace: str
    cluster: str
    example: bool
    rule: str | None
    standing: str
    summary: str
    reporters: int
    map_state: str
    time_note: str | None
    conflicts: int


@dataclass(frozen=True, slots=True)
class AlarmPage:
    """Alarms of a scope, newest first; `more` tells whether older ones follow.

    `reached` is where the next page begins: behind the last row, or where the walk stopped.
    """

    rows: tuple[AlarmRow, ...]
    more: bool
    reached: Position | None
    looked_at_all: bool


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding of an alarm with the names of its device; None where not known."""

    alarm_id: int
    rule: str | None
    kind: str
    rank: int | None
    node_id: int | None
    node: str | None
    instance_id: str | None
    gpu_id: int | None
    gpu_uuid: str | None
    case_id: int


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One audit entry about a device, a case or a job."""

    id: int
    at: datetime
    actor: str
    verb: str
    summary: str
    case_id: int | None
    proposal_id: int | None
    node_id: int | None
    node: str | None
    job_id: int | None


_ALARM_COLUMNS = (
    alarms.c.id,
    alarms.c.occurred_at.label("at"),
    alarms.c.family,
    alarms.c.check_name.label("check"),
    alarms.c.step,
    alarms.c.window_first,
    alarms.c.window_last,
    alarms.c.attempt_id,
    alarms.c.job_id,
    jobs.c.name.label("job"),
    jobs.c.namespace,
    alarms.c.cluster,
    jobs.c.example,
    alarms.c.rule,
    alarms.c.standing,
    alarms.c.summary,
    alarms.c.reporters,
    alarms.c.map_state,
    alarms.c.time_note,
    alarms.c.conflicts,
)


def alarm_page(
    connection: Connection, scope: Scope, before: Position | None, limit: int
) -> AlarmPage:
    """Read the newest alarms of a scope that are older than a position."""
    if names_nothing(scope):
        return AlarmPage((), False, None, True)
    conditions = row_conditions(scope)
    # One alarm can have several findings on one machine, so a walk by device is a little longer.
    walked = SCAN if conditions else (limit + 1) * (4 if scope.device else 1)
    walk = newest(scope, walked, *_older(scope, before))
    once = sa.select(walk.c.alarm_id, walk.c.at).distinct().subquery()
    statement = (
        sa.select(*_ALARM_COLUMNS)
        .select_from(once.join(alarms, alarms.c.id == once.c.alarm_id))
        .join(jobs, jobs.c.id == alarms.c.job_id)
        .where(*conditions)
        .order_by(once.c.at.desc(), once.c.alarm_id.desc())
        .limit(limit + 1)
    )
    rows = tuple(AlarmRow(*tuple[Any, ...](row)) for row in connection.execute(statement))
    if len(rows) > limit:
        last = rows[limit - 1]
        return AlarmPage(rows[:limit], True, (last.at, last.id), True)
    end = _end_of(connection, walk, walked)
    return AlarmPage(rows, end is not None, end, end is None)


def _older(scope: Scope, before: Position | None) -> list[sa.ColumnElement[bool]]:
    if before is None:
        return []
    moment, alarm_id = at_column(scope), id_column(scope)
    at, last = before
    return [moment <= at, sa.or_(moment < at, alarm_id < last)]


def _end_of(connection: Connection, walk: sa.Subquery, walked: int) -> Position | None:
    """Tell where a walk stopped because of its limit; None where it reached the range's start."""
    count = connection.execute(sa.select(sa.func.count()).select_from(walk)).scalar_one()
    if count < walked:
        return None
    order = (walk.c.at, walk.c.alarm_id)
    row = connection.execute(sa.select(walk.c.at, walk.c.alarm_id).order_by(*order).limit(1)).one()
    return row.at, row.alarm_id


def findings_of(
    connection: Connection, alarm_ids: Sequence[int], each: int = DEVICES_SHOWN
) -> dict[int, tuple[FindingRow, ...]]:
    """Read the first findings of some alarms by their keys, with the names of the devices."""
    found: dict[int, list[FindingRow]] = {}
    for start in range(0, len(alarm_ids), 500):
        some = alarm_ids[start : start + 500]
        statement = (
            sa.select(
                findings.c.alarm_id,
                findings.c.rule,
                findings.c.kind,
                findings.c.rank,
                findings.c.node_id,
                nodes.c.name,
                findings.c.instance_id,
                findings.c.gpu_id,
                gpus.c.uuid,
                findings.c.case_id,
            )
            .select_from(findings)
            .join(nodes, nodes.c.id == findings.c.node_id, isouter=True)
            .join(gpus, gpus.c.id == findings.c.gpu_id, isouter=True)
            .where(findings.c.alarm_id.in_(some), findings.c.ordinal < each)
            .order_by(findings.c.alarm_id, findings.c.ordinal)
        )
        for row in connection.execute(statement):
            found.setdefault(row.alarm_id, []).append(FindingRow(*tuple[Any, ...](row)))
    return {alarm_id: tuple(rows) for alarm_id, rows in found.items()}


def action_page(
    connection: Connection, scope: Scope, before: Position | None, limit: int
) -> tuple[ActionRow, ...]:
    """Read the newest audit entries about devices, cases and jobs of a scope; `limit` + 1 at most.

    Filters that only alarms can meet (check, rule, status) leave actions out.
    """
    if names_nothing(scope) or scope.families or scope.checks or scope.rules or scope.standings:
        return ()
    column = audit_entries.c
    conditions: list[sa.ColumnElement[bool]] = [column.at >= scope.start, column.at < scope.end]
    if before is not None:
        conditions += [column.at <= before[0], sa.or_(column.at < before[0], column.id < before[1])]
    about = _about(connection, scope)
    walk = sa.select(audit_entries).where(*conditions)
    if about is None:
        walk = walk.order_by(column.at.desc(), column.id.desc()).limit(SCAN)
    else:
        walk = walk.where(about).limit(SCAN)
    some = walk.subquery()
    statement = (
        sa.select(
            some.c.id, some.c.at, some.c.actor, some.c.verb, some.c.summary, some.c.case_id,
            some.c.proposal_id, some.c.node_id, nodes.c.name, some.c.job_id,
        )
        .select_from(some.join(nodes, nodes.c.id == some.c.node_id, isouter=True))
        .where(sa.func.coalesce(some.c.case_id, some.c.node_id, some.c.job_id).is_not(None))
        .order_by(some.c.at.desc(), some.c.id.desc())
        .limit(limit + 1)
    )  # fmt: skip
    if scope.text:
        statement = statement.where(some.c.summary.icontains(scope.text, autoescape=True))
    if scope.clusters:
        statement = statement.where(
            sa.or_(some.c.node_id.is_(None), nodes.c.cluster.in_(scope.clusters))
        )
    return tuple(ActionRow(*tuple[Any, ...](row)) for row in connection.execute(statement))


def _about(connection: Connection, scope: Scope) -> sa.ColumnElement[bool] | None:
    """Say which entries concern the chosen devices or jobs; None where all do."""
    column = audit_entries.c
    if scope.gpu_ids is not None:
        return column.case_id.in_(_cases(connection, cases.c.gpu_id, scope.gpu_ids))
    if scope.node_ids is not None:
        return column.node_id.in_(scope.node_ids)
    if scope.job_ids is not None:
        some = _cases(connection, cases.c.job_id, scope.job_ids)
        return sa.or_(column.case_id.in_(some), column.job_id.in_(scope.job_ids))
    return None


def _cases(
    connection: Connection, column: sa.Column[Any], chosen: Collection[int]
) -> tuple[int, ...]:
    statement = sa.select(cases.c.id).where(column.in_(chosen)).limit(SCAN)
    return tuple(connection.execute(statement).scalars())


def stamp(connection: Connection) -> str:
    """Name the newest document and audit entry: another stamp means that something came in."""
    newest_document = connection.execute(sa.select(sa.func.max(documents.c.id))).scalar()
    newest_entry = connection.execute(sa.select(sa.func.max(audit_entries.c.id))).scalar()
    return f"{newest_document or 0}-{newest_entry or 0}"


def newest_document_at(connection: Connection) -> datetime | None:
    """Tell when the newest document came; None before the first."""
    statement = sa.select(documents.c.received_at).order_by(documents.c.id.desc()).limit(1)
    return connection.execute(statement).scalar()
