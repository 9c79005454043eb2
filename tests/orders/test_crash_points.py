"""Whatever point a worker dies at: is at most one order sent, and is the record true afterwards?

Every commit and every call to the outside is a point, before it and after it, from the claim to the
record of the proof. Each is tried with a machine of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from app.actions import looking
from app.actions.executor import Executor
from app.store.proposals import Proposal
from tests.orders.conftest import MakeYard
from tests.orders.crashing import Killed, Killer
from tests.orders.yard import Yard, instance

ENDED = ("verified", "refused", "failed", "gone")


@dataclass(frozen=True)
class Kind:
    """One kind of action: what it needs, what counts as an order, and what shows its effect."""

    action: str
    parameters: dict[str, Any]
    orders: Callable[[Yard, int], int]
    done: Callable[[Yard, int], bool]
    before: str | None = None  # what has to be done to the machine first


def _sent(operation: str) -> Callable[[Yard, int], int]:
    def count(yard: Yard, number: int) -> int:
        return sum(
            call.operation == operation and instance(number) in str(call.asked)
            for call in yard.sagemaker.calls
        )

    return count


def _patches(yard: Yard, number: int) -> int:
    return sum(instance(number) in str(call) for call in yard.kubernetes.changes())


def _left(yard: Yard, number: int) -> bool:
    return instance(number) not in yard.sagemaker.cluster.nodes


def _rebooted(yard: Yard, number: int) -> bool:
    return yard.sagemaker.node(instance(number)).bootings > 1


def _cordoned(yard: Yard, number: int) -> bool:
    spec = yard.kubernetes.node(f"hyperpod-{instance(number)}")["spec"]
    return spec.get("unschedulable") is True


def _uncordoned(yard: Yard, number: int) -> bool:
    return not _cordoned(yard, number)


def _second_patches(yard: Yard, number: int) -> int:
    return _patches(yard, number) - 1


def _tested(yard: Yard, number: int) -> bool:
    return _sent("StartClusterHealthCheck")(yard, number) > 0


KINDS = (
    Kind("cordon", {}, _patches, _cordoned),
    Kind("uncordon", {}, _second_patches, _uncordoned, "cordon"),
    Kind("replace", {}, _sent("BatchReplaceClusterNodes"), _left),
    Kind("replace", {"way": "label"}, _patches, _left),
    Kind("reboot", {}, _sent("BatchRebootClusterNodes"), _rebooted),
    Kind("deep_health_check", {}, _sent("StartClusterHealthCheck"), _tested),
)


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    """Give what kills."""
    return Killer(monkeypatch)


KINDS_BY_NAME = {f"{one.action}{'-by-label' if one.parameters else ''}": one for one in KINDS}
QUICK = ("cordon", "uncordon", "replace", "reboot")


@pytest.mark.parametrize("name", QUICK)
def test_every_point_of_an_action(make_yard: MakeYard, killer: Killer, name: str) -> None:
    _every_point(make_yard(machines=70), killer, KINDS_BY_NAME[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS_BY_NAME)
def test_every_point_on_each_database(
    make_yard_on_each: MakeYard, killer: Killer, name: str
) -> None:
    _every_point(make_yard_on_each(machines=70), killer, KINDS_BY_NAME[name])


def _every_point(yard: Yard, killer: Killer, kind: Kind) -> None:
    proposal = _approve(yard, kind, 1)
    killer.arm(None)
    first = _live(yard, proposal)
    points = list(killer.seen)
    assert yard.row(first.id).status == "verified", yard.row(first.id).outcome
    assert kind.orders(yard, 1) == 1
    assert len(points) > 8
    tried = 0
    while _dies_at(yard, killer, kind, tried):
        tried += 1
    # Others may look once more, and the first one opened connections that they share.
    assert tried >= len(points) - 4, points


def _dies_at(yard: Yard, killer: Killer, kind: Kind, at: int) -> bool:
    """Kill a worker at one point and judge what is left; False when it lived to the end."""
    number = 2 + at
    proposal = _approve(yard, kind, number)
    killer.arm(at)
    try:
        _live(yard, proposal)
    except Killed as end:
        killer.disarm()
        _come_back(yard, proposal)
        _judge(yard, kind, proposal, number, str(end))
        return True
    killer.disarm()
    return False


def _approve(yard: Yard, kind: Kind, number: int) -> Proposal:
    if kind.before is not None:
        yard.run(yard.approve(kind.before, number))
    return yard.approve(kind.action, number, **kind.parameters)


def _live(yard: Yard, proposal: Proposal) -> Proposal:
    """Do what a worker does with an approved action, until it has ended."""
    yard.run(proposal)
    _look_on(yard, proposal)
    return proposal


def _look_on(yard: Yard, proposal: Proposal) -> None:
    """Let the hours pass that the slowest order takes, and look from time to time."""
    for minutes in (1, 45, 75, 90):
        if yard.row(proposal.id).status in ENDED:
            return
        yard.sagemaker.advance(minutes=minutes)
        looking.look_due(yard.context)


def _come_back(yard: Yard, proposal: Proposal) -> None:
    """Start anew after the crash: orphans are given up, what is approved goes on, looks go on."""
    # On a shared database others may be alive: a claim has to run out first.
    yard.sagemaker.advance(minutes=3)
    Executor(yard.context).settle_orphans(at_start=True)
    _look_on(yard, proposal)


def _judge(yard: Yard, kind: Kind, proposal: Proposal, number: int, point: str) -> None:
    row, orders, done = yard.row(proposal.id), kind.orders(yard, number), kind.done(yard, number)
    told = f"{point}: {row.status}, {orders} orders, done {done}: {row.outcome}"
    assert orders <= 1, told
    assert done == (orders == 1), told
    if orders == 0:
        # Not claimed yet: it waits. Claimed and not sent: nobody may say that it was done.
        assert row.status in ("approved", "unknown", "failed"), told
    else:
        assert row.status == "verified", told
    verbs = yard.verbs(proposal)
    assert verbs.count("proposal.verified") == (row.status == "verified"), told
