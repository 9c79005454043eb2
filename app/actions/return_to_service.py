"""What is known of what has to be true before the device of a case works again?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions.tests_of_case import Tested, of_case
from app.config import Settings
from app.store import (
    condemned,
    machine_gpus,
    machine_links,
    replay_reading,
    targeted_audits,
)
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.exposure_reading import device_incidents
from app.store.hardware_tests import AUDIT, DEEP, Machine, newest_of
from app.store.proposals import Proposal
from app.store.targeted_audits import TargetedAudit
from witness.rules.return_to_service import (
    Checklist,
    Facts,
    Probation,
    Replacement,
    Replayed,
    TestDone,
    Watch,
    checklist,
)

NAMES = {DEEP: "Deep health check", AUDIT: "Targeted audit"}


@dataclass(frozen=True, slots=True)
class Return:
    """The checklist of a case, and what a person can do next.

    `lift` is the cordon whose undoing would release the machine; None: nothing of ours holds it.
    `audits` are the standing orders of the case.
    """

    checklist: Checklist
    lift: Proposal | None
    audits: tuple[TargetedAudit, ...]
    released_at: datetime | None


def of_a_case(
    connection: Connection,
    settings: Settings,
    case: DocketCase,
    mine: Sequence[Proposal],
    now: datetime,
) -> Return | None:
    """Put the checklist of a case together; None where no machine is under suspicion."""
    if case.gpu_id is None and case.node_id is None:
        return None
    replacement = _replacement(connection, case, mine)
    tested: Mapping[str, Tested] = of_case(connection, case)
    if replacement is not None:
        tested = _of_the_new_one(connection, case, replacement.instance_id)
    audits = targeted_audits.of_proposals(connection, [one.id for one in mine])
    released = _newest(mine, "uncordon", case)
    facts = Facts(
        uuid_known=case.gpu_uuid is not None,
        replays=tuple(
            Replayed(one.replays, one.wrong, one.witnesses)
            for one in replay_reading.since(connection, case.gpu_id, case.first_alarm_at)
        ),
        tests=_tests(tested),
        released=released is not None,
        probation=_probation(audits, released),
        watch=None
        if released is None
        else _watch(released, _newest_alarm(connection, case), settings, now),
        replacement=replacement,
        rebooted=_newest(mine, "reboot", case) is not None,
    )
    return Return(
        checklist(facts),
        None if released is not None or case.cordon != "ours" else _newest(mine, "cordon", case),
        audits,
        None if released is None else released.finished_at,
    )


def _newest(mine: Sequence[Proposal], action: str, case: DocketCase) -> Proposal | None:
    """Find the newest action of a kind on the case's machine that was done."""
    done = [
        one
        for one in mine
        if one.action == action
        and one.status in ("verified", "accepted")
        and one.finished_at is not None
        and one.node_id == case.node_id
    ]
    newest = max(done, key=lambda one: (one.finished_at, one.id), default=None)
    if newest is None or action != "uncordon":
        return newest
    held = _newest(mine, "cordon", case)
    again = held is not None and held.finished_at and newest.finished_at < held.finished_at  # type: ignore[operator]
    return None if again else newest


def _of_the_new_one(
    connection: Connection, case: DocketCase, instance_id: str
) -> Mapping[str, Tested]:
    """Read what tests say of the machine that came: those of the old one say nothing of it."""
    found = newest_of(connection, Machine(case.cluster, None, instance_id), None, DEEP)
    return {DEEP: Tested(found[0])} if found else {}


def _tests(tested: Mapping[str, Tested]) -> tuple[TestDone, ...]:
    return tuple(
        TestDone(
            NAMES[kind],
            one.test.result,
            one.test.recall,
            one.test.dated and not one.before_newest,
        )
        for kind, one in tested.items()
        if one.test is not None
    )


def _probation(audits: Sequence[TargetedAudit], released: Proposal | None) -> Probation | None:
    if released is None:
        return None
    one = next((audit for audit in audits if audit.proposal_id == released.id), None)
    if one is None:
        return None
    until = f"{one.ends_at:%Y-%m-%d %H:%M} UTC"
    return Probation(one.state, one.passes, one.passes_wanted, until)


def _watch(released: Proposal, newest_alarm: datetime, settings: Settings, now: datetime) -> Watch:
    since = released.finished_at or now
    alarmed = newest_alarm > since
    until = newest_alarm if alarmed else now
    return Watch(max((until - since).days, 0), settings.watch_days, alarmed)


def _newest_alarm(connection: Connection, case: DocketCase) -> datetime:
    """Find the newest alarm of the device, in whatever case and machine."""
    found = device_incidents(connection, case.gpu_id, None)
    return max((one.last_at for one in found), default=case.last_alarm_at)


def _replacement(
    connection: Connection, case: DocketCase, mine: Sequence[Proposal]
) -> Replacement | None:
    replaced = next(
        (one for one in reversed(mine) if one.action == "replace" and one.status == "verified"),
        None,
    )
    if replaced is None:
        return None
    links = machine_links.of_proposal(connection, replaced.id)
    if not links:
        return Replacement("a machine that is not known yet", None)
    new = links[-1].new_instance_id
    gpus = machine_gpus.of_instance(connection, case.cluster, new)
    bad = sum(condemned.of_gpu(connection, one.gpu_id) is not None for one in gpus)
    return Replacement(new, len(gpus) or None, bad)
