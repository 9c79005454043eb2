"""What does a case come down to now, and what is proposed for it?

Runs in the intake's transaction for every case about which something new is known: it reads the
case's findings, incidents and score, asks the rules, and keeps words and proposals up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from app.actions.policy import approve_lasts
from app.actions.propose import keep_proposals
from app.actions.scoring import gpu_history
from app.actions.tests_of_case import health_of, of_case
from app.config import Settings
from app.store import casework_rows as rows
from app.store import rail_policy
from app.store.connection import Connection
from app.store.exposure_reading import (
    DeviceIncident,
    audited_stretches,
    device_incidents,
    digest_devices,
)
from app.store.gpu_tests import passed_of
from app.store.hardware_tests import AUDIT, DEEP
from witness.rules.decision_table import BY_ID
from witness.rules.findings import Caution, Finding
from witness.rules.proposal import (
    CaseFacts,
    one_digest_many_devices,
    recommend,
)
from witness.rules.repeat_offenders import PastIncident, Recurrence, recurrence
from witness.rules.score import score

# Alarms of one build within a week of each other are looked at together.
DIGEST_DAYS = 7


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that a judgement depends on: days, steps, audits."""

    recurrence_days: int = 90
    proposal_days: float = 7.0
    audit_every: int = 10
    audit_passes: int = 20
    audit_days: float = 7.0
    by_node: frozenset[str] = frozenset()  # clusters whose machines are repaired by their node

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read the settings."""
        return cls(
            settings.recurrence_days,
            settings.proposal_days,
            settings.targeted_audit_every,
            settings.targeted_audit_passes,
            settings.targeted_audit_days,
            frozenset(
                name for name, entry in settings.providers.items() if entry.get("kind") == "gke"
            ),
        )

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Give how each action that needs it is carried out, by its name."""
        closely = {"audit_every": self.audit_every, "passes": self.audit_passes}
        return {"targeted_audit": {**closely, "days": self.audit_days}}


def judge_cases(
    connection: Connection, case_ids: Iterable[int], now: datetime, policy: Policy
) -> None:
    """Judge cases anew and keep their proposals up."""
    for case in rows.read_cases(connection, case_ids):
        found = rows.newest_findings(connection, case.id)
        if found:
            _judge(connection, case, found, now, policy)


def _judge(
    connection: Connection,
    case: rows.CaseRow,
    found: list[rows.KeptFinding],
    now: datetime,
    policy: Policy,
) -> None:
    history = device_incidents(connection, case.gpu_id, case.instance_id)
    again = _recurrence(case, found, history, policy)
    tested = of_case(connection, case)
    facts = CaseFacts(
        findings=_of_the_table(found),
        p=_p(connection, case, history),
        recurrence=again,
        node=case.node,
        instance_id=case.instance_id,
        health_check=health_of(tested, DEEP),
        targeted_audit=health_of(tested, AUDIT),
        one_digest_many_devices=_many_devices(connection, history, now),
        nan_only_one_digest=_only_nan(history),
        cordoned=case.cordon == "ours",
        by_instance=case.cluster not in policy.by_node,
    )
    said = recommend(facts)
    newest = found[0]
    leading = next((one for one in found if one.rule is not None), newest)
    rows.write_judgement(
        connection,
        case.id,
        {
            "standing": said.status_class,
            "rule": leading.rule,
            "rank": leading.rank,
            "headline": said.headline,
            "advice": said.what_to_do,
            # Of two cases that ask for the same, the more probable one comes first.
            "urgency": 10 * said.urgency + round(10 * (facts.p or 0.0)),
            "recurrence": again.words if again else None,
        },
    )
    if case.status == "open":
        expires_at = now + approve_lasts(rail_policy.read(connection), policy.proposal_days)
        keep_proposals(connection, case, said, leading, now, expires_at, policy.parameters)


def _of_the_table(found: Sequence[rows.KeptFinding]) -> tuple[Finding, ...]:
    """Turn stored findings back into the rules' own.

    A device that one alarm names alone is not excused by another alarm that names half the job.
    """
    alone = [one for one in found if not one.software_first] or found
    return tuple(_finding(one) for one in alone)


def _finding(kept: rows.KeptFinding) -> Finding:
    row = BY_ID[kept.rule] if kept.rule is not None else None
    cautions = tuple(Caution(code, text) for code, text in kept.cautions)
    return Finding(
        rule=kept.rule,
        meaning=row.meaning if row else (cautions[0].text if cautions else ""),
        action=row.action if row else "No recommendation: a person must look.",
        ambiguous=kept.ambiguous,
        rank=kept.rank,
        cautions=cautions,
        kind=kept.kind,
        blocks_replacement=kept.blocks_replacement,
        software_first=kept.software_first,
    )


def _recurrence(
    case: rows.CaseRow,
    found: Sequence[rows.KeptFinding],
    history: Sequence[DeviceIncident],
    policy: Policy,
) -> Recurrence | None:
    """Look for earlier incidents than the newest that this case knows."""
    mine = {one.incident_id for one in found}
    own = [one for one in history if one.id in mine]
    if not own:
        return None
    newest = max(own, key=lambda one: (one.first_at, one.id))
    previous = [
        PastIncident(
            one.first_at,
            one.job,
            one.rank,
            one.kind,
            "gpu" if case.gpu_id is not None and one.gpu_id == case.gpu_id else "instance",
        )
        for one in history
        if one.id != newest.id
    ]
    return recurrence(previous, newest.first_at, policy.recurrence_days, newest.kind)


def _p(
    connection: Connection, case: rows.CaseRow, history: Sequence[DeviceIncident]
) -> float | None:
    if case.gpu_id is None:
        return None
    own = [one for one in history if one.gpu_id == case.gpu_id]
    if not own:
        return None
    stretches = audited_stretches(connection, case.gpu_id) if len(own) > 1 else []
    passed = passed_of(connection, [case.gpu_id]).get(case.gpu_id, ())
    found = score(gpu_history(own, stretches, case.last_alarm_at, passed))
    return None if found is None else found.p


def _many_devices(connection: Connection, history: Sequence[DeviceIncident], now: datetime) -> bool:
    digests = sorted({one.code_digest for one in history if one.code_digest is not None})
    if not digests:
        return False
    newest = max(one.last_at for one in history)
    since = min(newest, now) - timedelta(days=DIGEST_DAYS)
    return one_digest_many_devices(digest_devices(connection, digests, since))


def _only_nan(history: Sequence[DeviceIncident]) -> bool:
    """Tell whether only NaN, repeatedly, in one job of one build, was ever held against it."""
    digests = {one.code_digest for one in history}
    jobs = {one.job_id for one in history}
    nan = all(one.kind == "nonfinite" for one in history)
    repeated = sum(one.alarms for one in history) > 1
    return nan and repeated and len(jobs) == 1 and len(digests) == 1 and None not in digests
