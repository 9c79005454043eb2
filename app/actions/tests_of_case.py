"""What do tests of a case's machine say about its alarms?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.store import hardware_tests
from app.store.connection import Connection
from app.store.hardware_tests import AUDIT, DEEP, Machine, Test
from witness.rules.proposal import Health


class Investigated(Protocol):
    """A case, as far as tests of its machine are looked for."""

    @property
    def id(self) -> int:
        """Give its id."""
        ...

    @property
    def cluster(self) -> str:
        """Give the cluster."""
        ...

    @property
    def node_id(self) -> int | None:
        """Give the machine where the device was at its newest alarm."""
        ...

    @property
    def instance_id(self) -> str | None:
        """Give the instance of that machine."""
        ...

    @property
    def gpu_id(self) -> int | None:
        """Give the GPU; None: a node or a job is under investigation."""
        ...

    @property
    def first_alarm_at(self) -> datetime:
        """Give the time of the first alarm."""
        ...

    @property
    def last_alarm_at(self) -> datetime:
        """Give the time of the newest alarm."""
        ...


@dataclass(frozen=True, slots=True)
class Tested:
    """The test of one kind that speaks for a machine now; None: none since the first alarm.

    `before_newest` is True where it passed before the newest alarm, about which it says nothing.
    """

    test: Test | None = None
    before_newest: bool = False

    @property
    def health(self) -> Health | None:
        """Give what a judgement of the case may lean on."""
        if self.test is None or self.before_newest:
            return None
        found = self.test.result
        return found if found in ("passed", "failed", "running") else None


NOTHING = Tested()


def of_case(connection: Connection, case: Investigated) -> dict[str, Tested]:
    """Read what each kind of test says of a case."""
    return of_cases(connection, [case]).get(case.id, {})


def of_cases(connection: Connection, found: Iterable[Investigated]) -> dict[int, dict[str, Tested]]:
    """Read what each kind of test says of each case, in one statement."""
    cases = list(found)
    machines = {one.id: Machine(one.cluster, one.node_id, one.instance_id) for one in cases}
    known = [one for one in machines.values() if one.node_id or one.instance_id]
    if not known:
        return {}
    tests = hardware_tests.of_machines(connection, known)
    return {one.id: _of(one, tests.get(machines[one.id], ())) for one in cases}


def _of(case: Investigated, tests: Sequence[Test]) -> dict[str, Tested]:
    mine = [one for one in tests if one.gpu_id is None or one.gpu_id == case.gpu_id]
    return {
        kind: standing([one for one in mine if one.kind == kind], case) for kind in (DEEP, AUDIT)
    }


def standing(tests: Sequence[Test], case: Investigated) -> Tested:
    """Choose among tests of one kind, the newest first, the one that speaks for the machine.

    A label without a time does not outweigh a failed test whose time is known.
    """
    since = [one for one in tests if not one.dated or one.since >= case.first_alarm_at]
    if not since:
        return NOTHING
    chosen = since[0]
    if not chosen.dated and chosen.result == "passed":
        failed = [one for one in since if one.dated and one.result == "failed"]
        chosen = failed[0] if failed else chosen
    passed_before = chosen.result == "passed" and chosen.dated and chosen.since < case.last_alarm_at
    return Tested(chosen, passed_before)


def health_of(found: Mapping[str, Tested], kind: str) -> Health | None:
    """Give what a judgement may lean on for a kind of test."""
    return found.get(kind, NOTHING).health
