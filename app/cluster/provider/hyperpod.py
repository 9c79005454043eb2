"""How does a SageMaker HyperPod cluster answer the questions and orders of `ports`?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from app.cluster.errors import (
    ClusterError,
    ClusterFailed,
    ClusterRefused,
    MachineGone,
)
from app.cluster.provider import orders
from app.cluster.provider.calls import Access, SagemakerCalls
from app.cluster.provider.failures import Said, says_missing
from app.cluster.provider.ports import (
    Fleet,
    Machine,
    MachineAnswer,
    ProviderEvent,
    ProviderStatus,
    TestRequest,
    TestRun,
)
from app.cluster.provider.reading import read_event, read_fleet, read_machine, read_run

EVENT_PAGES = 20  # of 100 events
RUNS = 20  # each costs a question of its own


class HyperpodProvider:
    """One HyperPod cluster behind the port; safe to share between threads."""

    def __init__(self, name: str, cluster: str, access: Access) -> None:
        """Keep the cluster's name or ARN and the way in; touches no network."""
        self._name, self._cluster, self._access = name, cluster, access
        self._calls = SagemakerCalls(access)

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for the cluster."""
        return self._name

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._calls.close()

    def load(self) -> None:
        """Import and make the client, so that the first order need not wait for it."""
        self._calls.load()

    def status(self) -> ProviderStatus:
        """Say whether the client can be made; asks nobody, never raises."""
        try:
            self._calls.load()
        except ClusterError as error:
            return ProviderStatus(self._name, "misconfigured", error.message)
        where = f" in {self._access.region}" if self._access.region else ""
        words = f"SageMaker HyperPod, cluster {self._cluster}{where}"
        return ProviderStatus(self._name, "hyperpod", words)

    def fleet(self) -> Fleet:
        """Read the cluster: recovery mode, autoscaler, groups."""
        raw = self._calls.read("describe_cluster", ClusterName=self._cluster)
        if not raw.get("ClusterArn"):
            raise ClusterFailed("SageMaker's description of the cluster is empty.")
        return read_fleet(raw, self._cluster)

    def machine(self, instance_id: str) -> Machine:
        """Read one machine; raise `MachineGone` if SageMaker knows none of this id.

        A missing cluster is told from a missing machine by asking for the cluster.
        """
        if not orders.INSTANCE.fullmatch(instance_id):
            raise ClusterRefused(f"{instance_id!r} is no instance id: nothing was asked.")
        answer = self._calls.try_reading(
            "describe_cluster_node", ClusterName=self._cluster, NodeId=instance_id
        )
        if isinstance(answer, Said):
            raise self._no_machine(instance_id, answer)
        details = answer.get("NodeDetails") or {}
        if not details:
            raise ClusterFailed("SageMaker's description of the machine is empty.")
        machine = read_machine(details)
        if machine.status == "NotFound":
            raise MachineGone(f"SageMaker finds no machine {instance_id} any more.")
        if machine.instance_id != instance_id:
            raise ClusterFailed(f"SageMaker described another machine than {instance_id}.")
        return machine

    def _no_machine(self, instance_id: str, said: Said) -> ClusterError:
        if not says_missing(said):
            words = f"SageMaker refused the question ({said.code}: {said.words})."
            return ClusterRefused(words, status=said.status)
        self.fleet()  # raises what is wrong with the cluster itself
        return MachineGone(f"SageMaker knows no machine {instance_id}.", status=said.status)

    def machines(self, group: str | None = None) -> tuple[Machine, ...]:
        """Read all machines, or those of a group, page by page."""
        some = {} if group is None else {"InstanceGroupNameContains": group}
        found = self._calls.pages(
            "list_cluster_nodes", "ClusterNodeSummaries", {"ClusterName": self._cluster, **some}
        )
        machines = (read_machine(raw) for raw in found)
        # The filter means "contains": gpu also finds gpu-2.
        return tuple(one for one in machines if group is None or one.group == group)

    def replace(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order that machines be replaced, once; their volumes are lost."""
        return orders.batch(self._calls, "batch_replace_cluster_nodes", self._cluster, instance_ids)

    def reboot(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order that machines be restarted, once; what runs on them is lost."""
        return orders.batch(self._calls, "batch_reboot_cluster_nodes", self._cluster, instance_ids)

    def test(self, request: TestRequest) -> tuple[MachineAnswer, ...]:
        """Order deep health checks, once; machines that fail may be restarted or replaced."""
        return orders.test(self._calls, self._cluster, request)

    def test_runs(self, since: datetime) -> tuple[TestRun, ...]:
        """List the requests for deep health checks since a time, the newest first.

        () also where the client is too old to list them.
        """
        if not self._calls.can("list_cluster_operations"):
            return ()
        asked = {
            "ClusterName": self._cluster,
            "Type": "DeepHealthCheck",
            "CreationTimeAfter": since,
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
        }
        listed = self._calls.pages("list_cluster_operations", "ClusterOperationSummaries", asked)
        newest = islice((raw for raw in listed if raw.get("OperationId")), RUNS)
        return tuple(self._run(str(raw["OperationId"])) for raw in newest)

    def _run(self, operation_id: str) -> TestRun:
        return read_run(
            self._calls.read(
                "describe_cluster_operation", ClusterName=self._cluster, OperationId=operation_id
            )
        )

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """List events of a machine, or of all, the oldest first.

        () where the cluster keeps none: only one that provisions continuously does.
        """
        if instance_id is not None and not orders.INSTANCE.fullmatch(instance_id):
            raise ClusterRefused(f"{instance_id!r} is no instance id: nothing was asked.")
        asked = {
            "ClusterName": self._cluster,
            "EventTimeAfter": since,
            "SortBy": "EventTime",
            "SortOrder": "Ascending",
            **({} if instance_id is None else {"NodeId": instance_id}),
        }
        try:
            listed = list(self._calls.pages("list_cluster_events", "Events", asked, EVENT_PAGES))
        except ClusterRefused as error:
            if error.status == 400 and not self.fleet().continuous:
                return ()
            raise
        events = {event.id: event for event in map(read_event, listed) if event is not None}
        return tuple(sorted(events.values(), key=lambda event: event.at))
