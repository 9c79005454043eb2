"""What becomes of a machine: replaced, restarted, failed, and what tells the rest of the world?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta

from tests.doubles.sagemaker.clock import Clock
from tests.doubles.sagemaker.state import (
    FAILURE,
    PENDING,
    RUNNING,
    SHUTTING_DOWN,
    TESTING,
    Cluster,
    Event,
    Node,
    Timings,
)

Watcher = Callable[[str, Node], None]
"""Told of every step: "shutting_down", "gone", "running", "failed", "rebooting", "check_…"."""


class Machines:
    """The machines of one cluster and their life on the double's clock."""

    def __init__(self, cluster: Cluster, clock: Clock, timings: Timings) -> None:
        self.cluster, self.clock, self.timings = cluster, clock, timings
        self.events: list[Event] = []
        self.watchers: list[Watcher] = []
        self.begun: list[tuple[str, str]] = []  # what was begun, and for which machine
        self._number = itertools.count(0x0BB)

    def tell(self, step: str, node: Node) -> None:
        """Tell the watchers of a step."""
        for watcher in self.watchers:
            watcher(step, node)

    def note(self, words: str, node: Node, level: str = "Info") -> None:
        """Keep an event; a fault is told twice, with two ids, a second apart."""
        for later in range(2 if level == "Error" else 1):
            at = self.clock.now() + timedelta(seconds=later)
            self.events.append(Event(at, words, level, node.group, node.instance_id))

    def replace(self, node: Node, by: str) -> None:
        """Begin to replace a machine: `by` is "replace" (an order) or "platform"."""
        node.under_way, node.status = by, SHUTTING_DOWN
        self.begun.append((by, node.instance_id))
        self.tell("shutting_down", node)
        self.clock.after(self.timings.shut_down, lambda: self._gone(node))

    def _gone(self, node: Node) -> None:
        self.cluster.nodes.pop(node.instance_id, None)
        self.note(f"Instance {node.instance_id} terminated.", node)
        self.tell("gone", node)
        if self.cluster.autoscaler and not self.cluster.pods_pending:
            return
        self._come(node)

    def _come(self, old: Node) -> None:
        """Ask for a machine in the place of another one."""
        number = next(self._number)
        # Under Slurm the new machine keeps host name and address; under EKS it gets new ones.
        same = self.cluster.orchestrator == "Slurm"
        new = Node(
            instance_id=f"i-0c0ffee0{number:09x}",
            group=old.group,
            ip=old.ip if same else f"10.1.200.{number % 250 + 1}",
            launched=self.clock.now(),
            logical_id=self._logical_id(old, number),
            status=PENDING,
            under_way="start",
        )
        old.replaced_by = new.instance_id
        self.cluster.nodes[new.instance_id] = new
        self.note(
            f"Instance {new.instance_id} is starting as part of instance replacement in Cluster "
            f"{self.cluster.name}.", new,
        )  # fmt: skip
        self.tell("pending", new)
        self.clock.after(self.timings.start, lambda: self._started(new))

    def _logical_id(self, old: Node, number: int) -> str | None:
        if not self.cluster.continuous:
            return None
        return old.logical_id if self.cluster.keeps_logical_id else f"node-{number:x}"

    def _started(self, new: Node) -> None:
        if self.cluster.replacement_fails:
            new.status, new.under_way = FAILURE, None
            new.message = "Lifecycle scripts did not run successfully."
            self.note(f"Instance {new.instance_id} failed as part of instance replacement in "
                      f"Cluster {self.cluster.name}.", new, "Error")  # fmt: skip
            self.tell("failed", new)
            return
        if self.cluster.groups[new.group].checks_on_start:
            new.status, new.under_way = TESTING, "check"
            self.tell("check_running", new)
            self.clock.after(self.timings.check_on_start, lambda: self._ready(new, checked=True))
            return
        self._ready(new, checked=False)

    def _ready(self, new: Node, *, checked: bool) -> None:
        new.status, new.under_way = RUNNING, None
        self.note(f"Instance {new.instance_id} completed successfully as part of instance "
                  f"replacement in Cluster {self.cluster.name}.", new)  # fmt: skip
        self.tell("check_passed" if checked else "running", new)

    def bring_back(self, old: Node) -> None:
        """Let pods wait for a machine: an autoscaler then makes one in the place of another."""
        self.cluster.pods_pending = True
        self._come(old)

    def reboot(self, node: Node, by: str) -> None:
        """Restart a machine: same id, same address, same name."""
        node.under_way, node.status = by, PENDING
        self.begun.append((by, node.instance_id))
        self.tell("rebooting", node)
        self.clock.after(self.timings.reboot, lambda: self._rebooted(node))

    def _rebooted(self, node: Node) -> None:
        node.status, node.under_way = RUNNING, None
        node.bootings += 1
        self.note(f"Instance {node.instance_id} rebooted.", node)
        self.tell("rebooted", node)
