"""What must be read to judge a case, and how is the judgement written?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import (
    alarms,
    attempts,
    cases,
    findings,
    gpus,
    nodes,
    proposals,
    rank_map_nodes,
)

# The newest findings say what a case is about; more of them only repeat it.
FINDINGS = 60


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case as judged now; `node` and `gpu_uuid` None where they are not known."""

    id: int
    subject: str
    cluster: str
    status: str
    gpu_id: int | None
    node_id: int | None
    job_id: int
    node: str | None
    node_uid: str | None
    instance_id: str | None
    cordon: str | None
    gpu_uuid: str | None
    evidence_version: int
    last_alarm_id: int
    last_alarm_at: datetime
    first_alarm_at: datetime


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """A stored finding with its cautions as (code, text)."""

    alarm_id: int
    rule: str | None
    kind: str
    rank: int | None
    ambiguous: bool
    software_first: bool
    blocks_replacement: bool
    cautions: tuple[tuple[str, str], ...]
    occurred_at: datetime
    incident_id: int
    map_state: str


def read_cases(connection: Connection, case_ids: Iterable[int]) -> list[CaseRow]:
    """Read cases with where their device is."""
    joined = cases.outerjoin(nodes, nodes.c.id == cases.c.node_id).outerjoin(
        gpus, gpus.c.id == cases.c.gpu_id
    )
    columns = (
        cases.c.id,
        cases.c.subject,
        cases.c.cluster,
        cases.c.status,
        cases.c.gpu_id,
        cases.c.node_id,
        cases.c.job_id,
        nodes.c.name,
        nodes.c.uid,
        nodes.c.instance_id,
        nodes.c.cordon,
        gpus.c.uuid,
        cases.c.evidence_version,
        cases.c.last_alarm_id,
        cases.c.last_alarm_at,
        cases.c.first_alarm_at,
    )
    query = sa.select(*columns).select_from(joined).where(cases.c.id.in_(sorted(case_ids)))
    return [CaseRow(*tuple(row)) for row in connection.execute(query)]


def newest_findings(connection: Connection, case_id: int) -> list[KeptFinding]:
    """Read what the newest alarms of a case say, newest first."""
    query = (
        sa.select(
            findings.c.alarm_id,
            findings.c.rule,
            findings.c.kind,
            findings.c.rank,
            findings.c.ambiguous,
            findings.c.software_first,
            findings.c.blocks_replacement,
            findings.c.cautions,
            findings.c.occurred_at,
            findings.c.incident_id,
            alarms.c.map_state,
        )
        .join(alarms, alarms.c.id == findings.c.alarm_id)
        .where(findings.c.case_id == case_id)
        .order_by(findings.c.occurred_at.desc(), findings.c.alarm_id, findings.c.ordinal)
        .limit(FINDINGS)
    )
    return [KeptFinding(*row[:7], _cautions(row[7]), *row[8:]) for row in connection.execute(query)]


def _cautions(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((one["code"], one["text"]) for one in json.loads(text))


def involved_nodes(connection: Connection, alarm_id: int, limit: int) -> list[sa.Row[Any]]:
    """Read the machines of the attempt of an alarm that names nobody, up to limit + 1 of them."""
    query = (
        sa.select(nodes.c.id, nodes.c.name, nodes.c.uid, nodes.c.instance_id)
        .select_from(
            alarms.join(attempts, attempts.c.id == alarms.c.attempt_id)
            .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
            .join(nodes, nodes.c.id == rank_map_nodes.c.node_id)
        )
        .where(alarms.c.id == alarm_id)
        .order_by(nodes.c.name, nodes.c.id)
        .limit(limit + 1)
    )
    return list(connection.execute(query))


def write_judgement(connection: Connection, case_id: int, values: Mapping[str, Any]) -> None:
    """Write the words and the standing of a case."""
    connection.execute(sa.update(cases).where(cases.c.id == case_id).values(**values))


def open_proposals(connection: Connection, case_id: int) -> list[sa.Row[Any]]:
    """Read id, action, ordinal, status, node and outcome of all proposals of a case."""
    query = (
        sa.select(
            proposals.c.id,
            proposals.c.action,
            proposals.c.ordinal,
            proposals.c.status,
            proposals.c.node_id,
            proposals.c.decided_at,
            proposals.c.evidence_version,
            proposals.c.recommended_by,
            proposals.c.finished_at,
        )
        .where(proposals.c.case_id == case_id)
        .order_by(proposals.c.ordinal)
    )
    return list(connection.execute(query))


def add_proposals(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert proposals."""
    if rows:
        connection.execute(sa.insert(proposals), list(rows))


def renew_proposal(connection: Connection, proposal_id: int, values: Mapping[str, Any]) -> None:
    """Bind a proposal that waits for a decision to what is known now."""
    connection.execute(
        sa.update(proposals)
        .where(proposals.c.id == proposal_id, proposals.c.status == "proposed")
        .values(**values)
    )
