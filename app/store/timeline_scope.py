"""Which alarms does a set of filters mean, and which index finds them, the newest first?

No read of the timeline walks more than `SCAN` rows of an index, whatever is filtered.  A filter
that no index knows (rule, status, namespace, text, a check beside a device) is applied to those
rows, and the answer says how far back it has looked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store import ids
from app.store.intake.job_rows import searchable
from app.store.tables import alarms, findings, gpus, jobs, nodes
from witness.rules.identity import gpu_uuid

SCAN = 5_000
"""Rows of an index that one read walks at most: about 10 ms where the rows lie in memory."""
MATCHES = 20
"""Devices or jobs that one filter may mean; a name that fits more keeps the newest."""
FAMILIES = ("nonfinite", "ring", "weights", "reduced gradient", "unknown")

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Filters with names resolved to ids; None means all, `()` that nothing known is meant.

    `start` is inclusive, `end` exclusive.
    """

    start: datetime
    end: datetime
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()  # as posted, where they are no family
    rules: tuple[str, ...] = ()
    standings: tuple[str, ...] = ()
    text: str | None = None
    job_ids: Ids | None = None
    node_ids: Ids | None = None
    gpu_ids: Ids | None = None

    def between(self, start: datetime, end: datetime) -> Scope:
        """Give the same filters over another range."""
        return replace(self, start=start, end=end)

    @property
    def device(self) -> bool:
        """Tell whether nodes or GPUs are chosen."""
        return self.node_ids is not None or self.gpu_ids is not None

    @property
    def counted_in_advance(self) -> bool:
        """Tell whether the fleet's hourly counts answer these filters."""
        unindexed = (self.namespaces, self.checks, self.rules, self.standings, self.text)
        return not any(unindexed) and self.job_ids is None and not self.device


@dataclass(frozen=True, slots=True)
class Named:
    """A node, GPU or job that a filter means, for its label."""

    id: int
    label: str


def resolve(connection: Connection, filters: Filters, start: datetime, end: datetime) -> Scope:
    """Look up what the names in the filters mean; at most `MATCHES` rows each."""
    known = tuple(one for one in filters.check if one in FAMILIES)
    return Scope(
        start=start,
        end=end,
        clusters=filters.cluster,
        namespaces=filters.namespace,
        families=known,
        checks=tuple(one for one in filters.check if one not in FAMILIES),
        rules=filters.rule,
        standings=filters.status,
        text=filters.q,
        job_ids=jobs_meant(connection, filters) if filters.job else None,
        node_ids=_nodes(connection, filters) if filters.node or filters.instance else None,
        gpu_ids=_gpus(connection, filters.gpu) if filters.gpu else None,
    )


def _as_ids(texts: Sequence[str]) -> list[int]:
    found = []
    for text in texts:
        try:
            found.append(ids.read(text))
        except ValueError:
            continue
    return found


def called(table: sa.Table, texts: Sequence[str]) -> sa.ColumnElement[bool]:
    """Match exact names, found through the indexed start of the name, and ids."""
    starts = [searchable(text) for text in texts]
    named = sa.and_(table.c.search.in_(starts), table.c.name.in_(texts))
    return sa.or_(named, table.c.id.in_(_as_ids(texts)))


def jobs_meant(connection: Connection, filters: Filters) -> Ids:
    """Find the jobs that the filters mean, the newest first."""
    statement = sa.select(jobs.c.id).where(called(jobs, filters.job))
    if filters.cluster:
        statement = statement.where(jobs.c.cluster.in_(filters.cluster))
    if filters.namespace:
        statement = statement.where(jobs.c.namespace.in_(filters.namespace))
    statement = statement.order_by(jobs.c.last_seen_at.desc()).limit(MATCHES)
    return tuple(connection.execute(statement).scalars())


def _nodes(connection: Connection, filters: Filters) -> Ids:
    statement = sa.select(nodes.c.id)
    if filters.node:
        statement = statement.where(called(nodes, filters.node))
    if filters.instance:
        statement = statement.where(nodes.c.instance_id.in_(filters.instance))
    if filters.cluster:
        statement = statement.where(nodes.c.cluster.in_(filters.cluster))
    statement = statement.order_by(nodes.c.last_seen_at.desc()).limit(MATCHES)
    return tuple(connection.execute(statement).scalars())


def _gpus(connection: Connection, texts: Sequence[str]) -> Ids:
    found: dict[int, None] = {}
    for text in texts:
        for one in find_gpus(connection, text):
            found[one.id] = None
    return tuple(found)[:MATCHES]


def find_gpus(connection: Connection, text: str) -> tuple[Named, ...]:
    """Find the GPUs that a spelling of a UUID, its first digits or one of our ids can mean."""
    spelled = gpu_uuid(text)
    column = gpus.c.uuid
    if spelled.canonical is not None:
        meant = column == spelled.canonical
    elif spelled.prefix is not None:
        # "~" sorts after every hex digit and dash: a range that the unique index serves.
        meant = sa.and_(column >= spelled.prefix, column < spelled.prefix + "~")
    else:
        meant = column == text
    by_id = gpus.c.id.in_(_as_ids([text]))
    statement = sa.select(gpus.c.id, column).where(sa.or_(meant, by_id)).order_by(column)
    rows = connection.execute(statement.limit(MATCHES))
    return tuple(Named(row.id, row.uuid) for row in rows)


def names_nothing(scope: Scope) -> bool:
    """Tell whether a filter names a job, node or GPU that is not known."""
    return () in (scope.job_ids, scope.node_ids, scope.gpu_ids)


def newest(scope: Scope, limit: int = SCAN, *extra: sa.ColumnElement[bool]) -> sa.Subquery:
    """Walk at most `limit` alarms of the range by the best index, the newest first.

    Gives columns `alarm_id` and `at`; one alarm comes once for each finding on a chosen device.
    `extra` are conditions on `at_column(scope)` or the id, for keysets.
    """
    moment, alarm_id = at_column(scope), id_column(scope)
    base = sa.select(alarm_id.label("alarm_id"), moment.label("at")).where(
        moment >= scope.start, moment < scope.end, *extra
    )
    if scope.gpu_ids is not None:
        parts = [base.where(findings.c.gpu_id == one) for one in scope.gpu_ids]
    elif scope.node_ids is not None:
        parts = [base.where(findings.c.node_id == one) for one in scope.node_ids]
    elif scope.job_ids is not None:
        parts = [base.where(alarms.c.job_id == one) for one in scope.job_ids]
    else:
        parts = [base]
    # One bounded walk a device: over several at once SQLite would read and sort all their rows.
    walks = [part.order_by(moment.desc(), alarm_id.desc()).limit(limit) for part in parts]
    if len(walks) == 1:
        return walks[0].subquery("walk")
    halves: list[Any] = [sa.select(one.subquery()) for one in walks]
    merged = sa.union_all(*halves).subquery()
    order = (merged.c.at.desc(), merged.c.alarm_id.desc())
    return sa.select(merged).order_by(*order).limit(limit).subquery("walk")


def at_column(scope: Scope) -> sa.Column[Any]:
    """Name the time column of the index that serves the scope."""
    return findings.c.occurred_at if scope.device else alarms.c.occurred_at


def id_column(scope: Scope) -> sa.Column[Any]:
    """Name the alarm's id beside that time."""
    return findings.c.alarm_id if scope.device else alarms.c.id


def row_conditions(scope: Scope) -> list[sa.ColumnElement[bool]]:
    """List the conditions on `alarms` joined with `jobs` that no index serves."""
    found: list[sa.ColumnElement[bool]] = []
    if scope.clusters:
        found.append(alarms.c.cluster.in_(scope.clusters))
    if scope.namespaces:
        found.append(jobs.c.namespace.in_(scope.namespaces))
    if scope.families or scope.checks:
        wanted = (*scope.families, *scope.checks)
        found.append(sa.or_(alarms.c.family.in_(wanted), alarms.c.check_name.in_(scope.checks)))
    if scope.standings:
        found.append(alarms.c.standing.in_(scope.standings))
    if scope.device and scope.job_ids is not None:
        found.append(alarms.c.job_id.in_(scope.job_ids))
    if scope.text:
        found.append(
            sa.or_(
                alarms.c.summary.icontains(scope.text, autoescape=True),
                alarms.c.check_name.icontains(scope.text, autoescape=True),
                jobs.c.name.icontains(scope.text, autoescape=True),
            )
        )
    return found + _finding_conditions(scope)


def _finding_conditions(scope: Scope) -> list[sa.ColumnElement[bool]]:
    """Conditions that one finding of the alarm must meet, read by its key."""
    wanted: list[sa.ColumnElement[bool]] = []
    if scope.rules:
        wanted.append(findings.c.rule.in_(scope.rules))
    if scope.gpu_ids is not None and scope.node_ids is not None:
        wanted.append(findings.c.node_id.in_(scope.node_ids))
        wanted.append(findings.c.gpu_id.in_(scope.gpu_ids))
    if not wanted:
        return []
    inner = sa.select(findings.c.ordinal).where(findings.c.alarm_id == alarms.c.id, *wanted)
    return [inner.exists()]
