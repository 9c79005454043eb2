"""What does a deep health check do: to whom, one at a time, with which end?"""

from __future__ import annotations

from typing import Any

from tests.doubles.sagemaker.machines import Machines
from tests.doubles.sagemaker.state import RUNNING, TESTING, Node, Operation


class HealthChecks:
    """The requests for deep health checks of one cluster."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self.operations: list[Operation] = []

    def active(self) -> Operation | None:
        """Find the request that is still in progress: there is one at most."""
        return next((one for one in self.operations if one.status == "InProgress"), None)

    def start(self, configurations: list[dict[str, Any]]) -> Operation:
        """Begin; a second request while one is in progress is merged into it, or supersedes it."""
        operation = before = self.active()
        if operation is None or self._machines.cluster.overlap == "supersede":
            operation = Operation(self._machines.clock.now(), [])
            self.operations.append(operation)
        if before is not None and before is not operation:
            before.status = "Superseded"
            operation.configurations.extend(before.configurations)
            operation.waits_for |= before.waits_for
        operation.configurations.extend(configurations)
        for node in self._meant(configurations):
            operation.waits_for.add(node.instance_id)
            self._plan(node)
        return operation

    def _meant(self, configurations: list[dict[str, Any]]) -> list[Node]:
        """Find the machines; a group without ids means all of it."""
        nodes = self._machines.cluster.nodes
        found: list[Node] = []
        for one in configurations:
            ids = one.get("InstanceIds")
            found += [
                node
                for node in nodes.values()
                if node.group == one["InstanceGroupName"] and (not ids or node.instance_id in ids)
            ]
        return found

    def _plan(self, node: Node) -> None:
        machines = self._machines
        if node.busy or node.status != RUNNING:
            # A job is not killed: the check waits for a while and then passes the machine over.
            machines.clock.after(machines.timings.busy_wait, lambda: self._give_up_or_begin(node))
            return
        machines.clock.after(machines.timings.check_begins, lambda: self._begin(node))

    def _give_up_or_begin(self, node: Node) -> None:
        if node.busy or node.status != RUNNING:
            self._over(node)
        else:
            self._begin(node)

    def _begin(self, node: Node) -> None:
        node.status, node.under_way = TESTING, "check"
        self._machines.tell("check_running", node)
        if node.check_ends != "stuck":
            self._machines.clock.after(self._machines.timings.check, lambda: self._end(node))

    def _end(self, node: Node) -> None:
        node.under_way, node.status = None, RUNNING
        how, machines = node.check_ends, self._machines
        if how == "pass":
            machines.tell("check_passed", node)
        elif how in ("fail", "reboot", "replace"):
            words = "Encountered FaultyInstance. Replace the Instance."
            node.message = words
            machines.note(f"Deep health check failed on {node.instance_id}. {words}", node, "Error")
            machines.tell("check_failed", node)
            self._recover(node)
        else:
            machines.tell("check_silent", node)
        self._over(node)

    def _recover(self, node: Node) -> None:
        """Do what the platform does by itself where node recovery is automatic."""
        if self._machines.cluster.node_recovery != "Automatic":
            return
        if node.check_ends == "replace":
            self._machines.replace(node, "platform")
        elif node.check_ends == "reboot":
            self._machines.reboot(node, "platform")

    def _over(self, node: Node) -> None:
        for operation in self.operations:
            operation.waits_for.discard(node.instance_id)
            if operation.status == "InProgress" and not operation.waits_for:
                operation.status = "Done"
