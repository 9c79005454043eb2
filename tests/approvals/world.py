"""Which outside world and store, both in memory, does the random walk of approvals have?

A fake behind the ports, for this one test: ten thousand walks through a server would take hours.
The doubles of Kubernetes and SageMaker prove in their own tests that the ports behave like this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy.engine import Connection, Engine

from app.cluster.errors import MachineGone, NodeGone
from app.cluster.ports import (
    OUR_TAINT_EFFECT,
    OUR_TAINT_KEY,
    ActionResult,
    ClusterStatus,
    CordonCheck,
    CordonRequest,
    NodeState,
    OurCordon,
    Outcome,
    PodOnNode,
    Standing,
    Taint,
)
from app.cluster.provider.ports import (
    Answer,
    Fleet,
    Machine,
    MachineAnswer,
    ProviderEvent,
    ProviderStatus,
)
from tests.approvals.house import CLUSTER, START

T = TypeVar("T")


class Crash(BaseException):
    """The process dies here."""


@dataclass
class Box:
    """One machine."""

    name: str
    instance_id: str
    uid: str
    logical_id: str
    launched_at: datetime
    status: str = "Running"
    other: bool = False  # somebody else cordoned it
    ours: OurCordon | None = None
    ordered: bool = False  # away with it, by us

    @property
    def unschedulable(self) -> bool:
        """Tell whether new pods stay away."""
        return self.other or self.ours is not None


@dataclass
class World:
    """All machines, the clock, and what kills the process."""

    boxes: dict[str, Box] = field(default_factory=dict)
    time: datetime = START
    fuse: int | None = None  # ticks until the crash; None: none comes
    lose_answer: bool = False
    on_call: Callable[[str, str, str], None] = lambda action, proposal, node: None
    made: int = 0

    def tick(self) -> None:
        """Let a moment pass at which the process may die."""
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                raise Crash

    def add(self, name: str, logical_id: str | None = None) -> Box:
        """Put a machine in."""
        self.made += 1
        instance = name.removeprefix("hyperpod-")
        box = Box(name, instance, f"uid-{self.made}", logical_id or f"ln-{self.made}", self.time)
        self.boxes[name] = box
        return box

    def by_instance(self, instance_id: str) -> Box | None:
        """Find a machine at the provider."""
        return next((one for one in self.boxes.values() if one.instance_id == instance_id), None)


class Nodes:
    """The cluster behind its port."""

    name = CLUSTER

    def __init__(self, world: World) -> None:
        self.world = world

    def status(self) -> ClusterStatus:
        """Say that it can act."""
        return ClusterStatus(CLUSTER, "kubernetes", "in memory")

    def node(self, name: str) -> NodeState:
        """Read one node."""
        self.world.tick()
        box = self.world.boxes.get(name)
        if box is None:
            raise NodeGone(name)
        taints = (Taint(OUR_TAINT_KEY, OUR_TAINT_EFFECT),) if box.ours else ()
        return NodeState(
            name, box.uid, "1", None, box.instance_id, box.unschedulable, True, taints, {}, {},
            None, box.ours, "somebody" if box.other else None, None, False, True, {},
        )  # fmt: skip

    def nodes(self) -> tuple[NodeState, ...]:
        """Read all of them."""
        return tuple(self.node(name) for name in self.world.boxes)

    def pods_on(self, name: str) -> tuple[PodOnNode, ...]:
        """Find no pod."""
        return ()

    def cordon(self, request: CordonRequest) -> ActionResult:
        """Cordon at most once."""
        self.world.tick()
        box = self.world.boxes.get(request.node)
        if box is None:
            return ActionResult(Outcome.GONE, "It is gone.")
        if request.expect_uid not in (None, box.uid):
            return ActionResult(Outcome.REFUSED, "Another machine.", self.node(box.name))
        if box.other:
            return ActionResult(Outcome.ALREADY_BY_OTHER, "Not ours.", self.node(box.name))
        self.world.on_call("cordon", request.proposal, box.name)
        if box.ours is not None:
            return ActionResult(Outcome.ALREADY_OURS, "It was.", self.node(box.name))
        box.ours = OurCordon(request.case, request.by, request.at, request.proposal)
        return self._answer("It is cordoned.", box)

    def uncordon(self, request: CordonRequest) -> ActionResult:
        """Lift ours at most once."""
        self.world.tick()
        box = self.world.boxes.get(request.node)
        if box is None:
            return ActionResult(Outcome.GONE, "It is gone.")
        if box.ours is None:
            return ActionResult(Outcome.ALREADY_OURS, "Nothing of ours.", self.node(box.name))
        self.world.on_call("uncordon", request.proposal, box.name)
        box.ours = None
        return self._answer("It is lifted.", box)

    def _answer(self, words: str, box: Box) -> ActionResult:
        lost, self.world.lose_answer = self.world.lose_answer, False
        self.world.tick()
        if lost:
            return ActionResult(Outcome.UNKNOWN, "No answer came.")
        return ActionResult(Outcome.CHANGED, words, self.node(box.name))

    def verify_cordon(self, request: CordonRequest) -> CordonCheck:
        """Read whether it stands."""
        box = self.world.boxes.get(request.node)
        if box is None:
            return CordonCheck(Standing.GONE, "It is gone.")
        state = self.node(box.name)
        if request.expect_uid not in (None, box.uid):
            return CordonCheck(Standing.REPLACED, "Another machine.", state)
        if box.ours is not None:
            return CordonCheck(Standing.HOLDS, "It holds.", state)
        standing = Standing.BY_OTHER if box.other else Standing.LIFTED
        return CordonCheck(standing, "It does not hold.", state)


class Machines:
    """The provider behind its port."""

    name = CLUSTER

    def __init__(self, world: World, asking: Callable[[str], str]) -> None:
        self.world = world
        self.asking = asking  # which proposal is being sent for an instance

    def status(self) -> ProviderStatus:
        """Say that it can act."""
        return ProviderStatus(CLUSTER, "hyperpod", "in memory")

    def fleet(self) -> Fleet:
        """Describe the cluster."""
        return Fleet(CLUSTER, None, "InService", "eks", "Automatic", True, None, (), {})

    def machine(self, instance_id: str) -> Machine:
        """Read one machine."""
        self.world.tick()
        box = self.world.by_instance(instance_id)
        if box is None:
            raise MachineGone(instance_id)
        return Machine(
            instance_id, "gpu", box.status, None, box.logical_id, "ml.p5.48xlarge",
            box.launched_at, box.name, "zone", {}, {},
        )  # fmt: skip

    def machines(self, group: str | None = None) -> tuple[Machine, ...]:
        """Read all machines."""
        return tuple(self.machine(one.instance_id) for one in self.world.boxes.values())

    def replace(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Take the order, once."""
        self.world.tick()
        (instance,) = instance_ids
        box = self.world.by_instance(instance)
        if box is None:
            return (MachineAnswer(instance, Answer.GONE, "It is gone."),)
        self.world.on_call("replace", self.asking(instance), box.name)
        box.status, box.ordered = "ShuttingDown", True
        lost, self.world.lose_answer = self.world.lose_answer, False
        self.world.tick()
        answer = Answer.UNKNOWN if lost else Answer.ACCEPTED
        return (MachineAnswer(instance, answer, "Taken." if not lost else "No answer."),)

    def finish(self, box: Box) -> None:
        """Let another machine take the place of one that was ordered away."""
        del self.world.boxes[box.name]
        self.world.time += timedelta(seconds=1)
        self.world.add(f"hyperpod-i-{0xBEEF0000000000000 + self.world.made:017x}", box.logical_id)

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """List nothing."""
        return ()

    def test_runs(self, since: datetime) -> tuple[Any, ...]:
        """List nothing."""
        return ()


class MemoryStore:
    """The store's reading and writing over one connection, on which a process can die."""

    def __init__(self, engine: Engine, connection: Connection, world: World) -> None:
        self.engine = engine
        self.connection = connection
        self.world = world
        self._one_at_a_time = threading.RLock()  # a batch reads in several threads

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give the connection."""
        with self._one_at_a_time:
            yield self.connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Write all of it or nothing; the process may die before, or right after the commit."""
        with self._one_at_a_time:
            self.world.tick()
            savepoint = self.connection.begin_nested()
            try:
                value = work(self.connection)
            except BaseException:
                savepoint.rollback()
                raise
            savepoint.commit()
            self.world.tick()
            return value
