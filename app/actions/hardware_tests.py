"""What follows when a test of the hardware says something: who is told, what is judged anew?"""

from __future__ import annotations

from datetime import datetime

from app.actions.casework import Policy, judge_cases
from app.actions.orders.ports import TestSeen
from app.config import Settings
from app.store import audit, case_machines, hardware_tests
from app.store.connection import Connection
from app.store.hardware_tests import Machine, NewTest
from app.store.proposals import Proposal

TITLES = {
    "deep_health_check": "Deep health check",
    "targeted_audit": "Targeted audit",
    "replays": "Replays",
}


def policy_of(settings: Settings) -> Policy:
    """Give the settings that a judgement depends on."""
    return Policy.of(settings)


def note(
    connection: Connection, settings: Settings, proposal: Proposal, seen: TestSeen, now: datetime
) -> bool:
    """Keep what a test that was ordered said; False where that was known.

    Call it inside `writing.write`. The cases of the machine get a new evidence version once the
    test is over, and are judged again.
    """
    machine = Machine(proposal.cluster, proposal.node_id, proposal.instance_id)
    audited = seen.kind == hardware_tests.AUDIT
    gpu_id = case_machines.gpu_of(connection, proposal.gpu_uuid) if audited else None
    return note_test(
        connection,
        settings,
        NewTest(
            machine=machine,
            kind=seen.kind,
            result=seen.result,
            source=seen.source,
            words=seen.words,
            at=now,
            gpu_id=gpu_id,
            checks=seen.checks,
            recall=recall_of(settings, seen.kind),
            begun_at=proposal.claimed_at or proposal.decided_at,
            proposal_id=proposal.id,
        ),
        proposal.case_id,
    )


def recall_of(settings: Settings, kind: str) -> float | None:
    """Give the share of defective GPUs that a test finds, as assumed; None: not known.

    Audits that pass are clean hours in the score already, so they are no test in it as well.
    """
    return settings.deep_check_recall if kind == hardware_tests.DEEP else None


def note_test(
    connection: Connection, settings: Settings, test: NewTest, asked_by: int | None = None
) -> bool:
    """Keep a test of a machine, tell its cases, and judge them; False where it was known.

    `asked_by` is the case that ordered it: a new machine is tested for the old one's case.
    """
    if test.machine.node_id is None and test.machine.instance_id is None:
        return False
    kept = hardware_tests.keep(connection, test)
    if kept == "same":
        return False
    concerned = case_machines.cases_on(connection, test.machine, test.gpu_id, asked_by)
    if test.result != "running":
        case_machines.raise_evidence(connection, [one.id for one in concerned])
    title = TITLES.get(test.kind, test.kind)
    for one in concerned:
        audit.append(
            connection,
            "service",
            f"test.{test.result}",
            f"{title}: {test.result}, says the {test.source}. {test.words}",
            at=test.at,
            case_id=one.id,
            proposal_id=test.proposal_id,
            node_id=test.machine.node_id,
            details={
                "kind": test.kind,
                "result": test.result,
                "source": test.source,
                "checks": list(test.checks),
                "recall_assumed": test.recall,
                "instance_id": test.machine.instance_id,
            },
        )
    judged = [one.id for one in concerned if one.status == "open"]
    judge_cases(connection, judged, test.at, policy_of(settings))
    return True
