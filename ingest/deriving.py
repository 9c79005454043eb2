"""What does an alarm come to: findings of devices, joined to incidents and cases?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.store.columns import micros
from app.store.intake.case_rows import CaseBook, Subject, subject_of
from app.store.intake.finding_rows import FindingRow, incident_id, write_findings
from ingest.documents import AlarmPost
from ingest.group import Group
from ingest.placing import Placed
from witness.rules.alarm import Alarm
from witness.rules.findings import Finding, findings
from witness.rules.proposal import CaseFacts, recommend


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding with where its rank runs; None where that is not known."""

    finding: Finding
    node_id: int | None
    gpu_id: int | None
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class Derived:
    """What one alarm comes to."""

    alarm_id: int
    post: AlarmPost
    drafts: tuple[Draft, ...]


def draft_findings(alarm: Alarm, placed: Placed) -> tuple[Draft, ...]:
    """Read an alarm by the rules and say which devices it speaks of."""
    return tuple(
        Draft(finding, *placed.device(finding.rank)) for finding in findings(alarm, placed.topology)
    )


def verdict(drafts: Sequence[Draft]) -> dict[str, Any]:
    """Put the findings of one alarm into words and one standing."""
    found = tuple(draft.finding for draft in drafts)
    said = recommend(CaseFacts(findings=found))
    ruled = sorted((one for one in found if one.rule), key=lambda one: one.ambiguous)
    return {
        "rule": ruled[0].rule if ruled else None,
        "standing": said.status_class if ruled else "unknown",
        "summary": said.headline,
    }


def settle(group: Group, alarms: Sequence[Derived], resolved: bool = False) -> None:
    """Write findings, incidents and cases; `resolved`: the alarms were known, their places not."""
    book = CaseBook(group.connection)
    book.load(
        _subject(draft, group.job_id(one.post.envelope)) for one in alarms for draft in one.drafts
    )
    rows = [
        _row(group, book, one, ordinal, draft)
        for one in alarms
        for ordinal, draft in enumerate(one.drafts)
    ]
    new = write_findings(group.connection, rows, group.now)
    for row in rows:
        if resolved or row.incident_id in new:
            book.touched[row.case_id].changed = True
    book.write()
    group.cases.update(one.id for one in book.touched.values() if one.changed)


def _subject(draft: Draft, job_id: int) -> Subject:
    """Choose what a finding's case is about.

    An alarm that names half of a job is a case of the job: a case for each of thousands of GPUs
    would bury the docket and accuse them.
    """
    if draft.finding.software_first:
        return subject_of(None, None, job_id)
    return subject_of(draft.gpu_id, draft.node_id, job_id)


def _row(group: Group, book: CaseBook, one: Derived, ordinal: int, draft: Draft) -> FindingRow:
    envelope, finding = one.post.envelope, draft.finding
    job, at = group.job_id(envelope), micros(envelope.at)
    case = book.join(
        _subject(draft, job),
        alarm_id=one.alarm_id,
        at=at,
        cluster=envelope.cluster,
        node_id=None if finding.software_first else draft.node_id,
        job_id=job,
        now=micros(group.now),
    )
    # Where software is the first guess one incident of the job stands for all that it names.
    device = (draft.gpu_id, draft.node_id, finding.rank)
    device = (None, None, None) if finding.software_first else device
    cautions = [{"code": caution.code, "text": caution.text} for caution in finding.cautions]
    return FindingRow(
        alarm_id=one.alarm_id,
        ordinal=ordinal,
        rule=finding.rule,
        kind=finding.kind,
        rank=finding.rank,
        node_id=draft.node_id,
        gpu_id=draft.gpu_id,
        instance_id=draft.instance_id,
        job_id=job,
        case_id=case.id,
        incident_id=incident_id(job, envelope.code_digest, finding.kind, *device),
        family=one.post.alarm.check_family,
        occurred_at=at,
        ambiguous=finding.ambiguous,
        software_first=finding.software_first,
        blocks_replacement=finding.blocks_replacement,
        cautions=json.dumps(cautions),
        code_digest=envelope.code_digest,
        cluster=envelope.cluster,
    )
