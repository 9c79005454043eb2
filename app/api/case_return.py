"""How does a program read what tests say of a case, and what its return to service needs?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.actions.return_to_service import of_a_case
from app.actions.tests_of_case import of_case
from app.auth import Sender
from app.config import Settings
from app.store import condemned_reading, ids, proposals
from app.store.condemned_reading import Sighting
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.targeted_audits import TargetedAudit


def as_json(
    connection: Connection, settings: Settings, case: DocketCase, now: datetime, by: Sender
) -> dict[str, Any]:
    """Give tests, checklist, standing orders and sightings of a condemned GPU.

    Sightings name jobs of any namespace, so a token of one namespace gets none.
    """
    mine = proposals.of_cases(connection, [case.id]).get(case.id, ())
    back = of_a_case(connection, settings, case, mine, now)
    seen: tuple[Sighting, ...] = ()
    if case.gpu_id is not None and by.namespace is None:
        seen = condemned_reading.of_gpu(connection, case.gpu_id)
    seen = tuple(one for one in seen if by.cluster in (None, one.cluster))
    return {
        "tests": [
            {
                "kind": kind,
                "result": one.test.result,
                "source": one.test.source,
                "at": one.test.at,
                "time_known": one.test.dated,
                "before_newest_alarm": one.before_newest,
                "recall_assumed": one.test.recall,
                "checks": list(one.test.checks),
                "words": one.test.words,
            }
            for kind, one in of_case(connection, case).items()
            if one.test is not None
        ],
        "return_to_service": None
        if back is None
        else {
            "before_release": back.checklist.before_release,
            "released_at": back.released_at,
            "items": [
                {
                    "code": item.code,
                    "title": item.title,
                    "state": item.state,
                    "why": item.why,
                    "proves_not": item.proves_not,
                    "after_release": item.after_release,
                }
                for item in back.checklist.items
            ],
            "remarks": list(back.checklist.remarks),
        },
        "targeted_audits": [_audit(one) for one in ([] if back is None else back.audits)],
        "condemned_at_work": [_sighting(one) for one in seen],
    }


def _audit(one: TargetedAudit) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "probation": one.probation,
        "state": one.state,
        "audit_every": one.audit_every,
        "passes": one.passes,
        "passes_wanted": one.passes_wanted,
        "taken_by": dict(one.taken_by) or None,
        "taken_at": one.taken_at,
        "until": one.ends_at,
    }


def _sighting(one: Sighting) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "gpu_uuid": one.uuid,
        "certain": one.certain,
        "node": one.node,
        "instance_id": one.instance_id,
        "same_machine": one.same_machine,
        "job": one.job,
        "rank": one.rank,
        "since": one.first_at,
        "starts": one.starts,
        "acknowledged_by": one.acknowledged_by,
        "reason": one.reason,
    }
