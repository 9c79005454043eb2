"""Do all ranks audit on the same steps where the service asked rank 0 for closer audits?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist

from tests.witness_loop.jobs import Broken, Job, Recorder
from witness.ddp.schedule import Schedule
from witness.inject import Fault
from witness.simulate import fleet

SLOW = Schedule(audit_every=8, check_every=8, peer_offset=1)
EVERY_TWO = SimpleNamespace(id="0000000000001", audit_every=2, passes=3)
LONGER = SimpleNamespace(id="0000000000002", audit_every=4, passes=1)


class Asked(Recorder):
    """A reporter whose service asks for closer audits."""

    def __init__(self, *requests: Any) -> None:
        super().__init__()
        self.requests = requests

    def audit_requests(self, rows: Any) -> tuple[Any, ...]:
        """Give what is asked, whatever the rows."""
        assert len(rows) == dist.get_world_size()
        return self.requests


def audited(job: Job, last: int = 20) -> list[int]:
    """Give the steps whose forward was audited on this rank."""
    found = []
    for step in range(1, last + 1):
        if job.guard.schedule.is_audit(step):
            found.append(step)
        assert job.step(step) is None
    return found


def everything() -> dict[str, Any]:
    """Run each situation on this rank; steps as this rank audited them."""
    mine = dist.get_rank()
    same: dict[str, Any] = {}
    same["asked"] = audited(Job(schedule=SLOW, reporter=Asked(EVERY_TWO, LONGER)))
    # What a rank other than the first one heard is nobody's: it would wait alone.
    others = Asked(EVERY_TWO) if mine else Asked()
    same["only others"] = audited(Job(schedule=SLOW, reporter=others))
    same["none"] = audited(Job(schedule=SLOW, reporter=None))
    broken = Broken() if mine == 0 else Asked(EVERY_TWO)
    same["broken"] = audited(Job(schedule=SLOW, reporter=broken))
    strange = Asked(SimpleNamespace(id="x")) if mine == 0 else Asked()
    same["strange"] = audited(Job(schedule=SLOW, reporter=strange))
    off = Schedule(audit_every=0, check_every=8, peer_offset=1)
    same["off"] = audited(Job(schedule=off, reporter=Recorder()))
    told = Job(schedule=SLOW, reporter=Asked(EVERY_TWO))
    audited(told)
    same["taken"] = told.reporter.told("takes_audits")
    same["ring passes"] = [args[1] for args, _ in told.reporter.told("passed") if args[0] == "ring"]
    fused = Job(schedule=SLOW, reporter=Asked(EVERY_TWO), deferred=True)
    same["deferred"] = audited(fused)
    wrong = Fault.on(1, "0").multiply(1000.0).since(3)
    fault = Job(wrong, schedule=SLOW, reporter=Asked(EVERY_TWO))
    alarm = fault.run(range(1, 21))
    fault.injector.disarm()
    same["alarm"] = None if alarm is None else (alarm["step"], alarm["culprits"])
    return same


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, Any]]:
    """Run everything on three ranks, each on a node of its own."""
    found: list[dict[str, Any]] = fleet.run(3, 1, everything)
    return found


def test_all_ranks_audit_on_the_same_steps(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0] == ranks[1] == ranks[2]


def test_audits_come_closer_and_go_back(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["asked"] == [2, 4, 6, 8, 16]
    assert ranks[0]["ring passes"] == [2, 4, 6, 8, 16]
    assert ranks[0]["deferred"] == [2, 4, 6, 8, 16]
    assert ranks[0]["taken"] == [((["0000000000001"],), {})]


def test_nothing_but_an_answer_to_the_first_rank_changes_anything(
    ranks: list[dict[str, Any]],
) -> None:
    for case in ("only others", "none", "broken", "strange"):
        assert ranks[0][case] == [8, 16], case
    assert ranks[0]["off"] == []


def test_a_fault_is_found_at_the_closer_audit(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["alarm"] == (4, [1])


def test_a_schedule_comes_closer_for_so_many_audits() -> None:
    closer = Schedule(audit_every=100).closer(10, 3, 95)
    steps = [step for step in range(95, 310) if closer.is_audit(step)]
    assert steps == [100, 110, 120, 130, 200, 300]
    assert Schedule(audit_every=0).closer(10, 3, 0).is_audit(10) is False
    for every, passes in ((100, 3), (200, 3), (0, 3), (-1, 3), (10, 0)):
        assert Schedule(audit_every=100).closer(every, passes, 0) == Schedule(audit_every=100)


def test_offsets_keep_turning_in_the_closer_audits() -> None:
    closer = Schedule(audit_every=100, peer_offset=8).closer(10, 5, 0)
    offsets = [closer.offset(step, 5 * 8) for step in (0, 10, 20, 30, 40, 100, 200)]
    assert offsets == [8, 16, 8, 16, 8, 16, 8]
