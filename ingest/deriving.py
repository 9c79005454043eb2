"""What does an alarm come to: findings of devices, joined to incidents and cases?"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.store import telemetry_queue
from app.store.columns import micros
from app.store.intake.case_rows import CaseBook, Subject, subject_of
from app.store.intake.finding_rows import FindingRow, incident_id, write_findings
from ingest.documents import AlarmPost
from ingest.group import Group
from ingest.placing import Placed
from witness.rules.alarm import Alarm
from witness.rules.findings import Finding, findings
from witness.rules.likeness import likeness
from witness.rules.proposal import CaseFacts, recommend

# Of each process: alarms that were read, each with a few names at most.
REMEMBERED = 8_192
SHORT, SHORT_TEXT = 32, 512


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding with where its rank runs, None where that is not known; `cautions` as JSON."""

    finding: Finding
    node_id: int | None
    gpu_id: int | None
    instance_id: str | None
    cautions: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What the rules make of one alarm; `verdict` as columns of the alarm's row."""

    drafts: tuple[Draft, ...]
    verdict: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Derived:
    """What one alarm comes to."""

    alarm_id: int
    post: AlarmPost
    drafts: tuple[Draft, ...]


class _Readings:
    """What was made of the alarms that came last, by all that it depends on."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], Reading] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> Reading | None:
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: tuple[object, ...], reading: Reading) -> None:
        with self._lock:
            self._known[key] = reading
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


_readings = _Readings()


def read(alarm: Alarm, placed: Placed) -> Reading:
    """Read an alarm by the rules and say which devices it speaks of."""
    like = likeness(alarm) if _is_short(alarm) else None
    if like is None:
        return _read(alarm, placed)
    key = (*placed.content(), like)
    found = _readings.get(key)
    if found is None:
        found = _read(alarm, placed)
        _readings.put(key, found)
    return found


def _is_short(alarm: Alarm) -> bool:
    """Tell whether an alarm may be remembered: a few long ones would fill the memory."""
    listed = (alarm.mismatched_pairs, alarm.culprits, alarm.nonfinite, alarm.verdicts)
    named = sum(map(len, listed)) + len(alarm.suspects or ())
    texts = len(alarm.check) + sum(len(one.kind) for one in alarm.verdicts)
    return named <= SHORT and texts <= SHORT_TEXT


def _read(alarm: Alarm, placed: Placed) -> Reading:
    found = findings(alarm, placed.topology)
    drafts = tuple(
        Draft(
            finding,
            *placed.device(finding.rank),
            json.dumps([{"code": one.code, "text": one.text} for one in finding.cautions]),
        )
        for finding in found
    )
    return Reading(drafts, _verdict(found))


def _verdict(found: tuple[Finding, ...]) -> dict[str, Any]:
    """Put the findings of one alarm into words and one standing."""
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
    # An example's GPUs are invented: a source would be asked, and paid, for nothing.
    real = [one.alarm_id for one in alarms if not one.post.envelope.example]
    telemetry_queue.want_alarms(group.connection, real, group.now)
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
        cautions=draft.cautions,
        code_digest=envelope.code_digest,
        cluster=envelope.cluster,
    )
