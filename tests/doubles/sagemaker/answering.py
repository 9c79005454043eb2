"""How does the service answer each operation, and in which words does it say no?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.doubles.sagemaker.health_checks import HealthChecks
from tests.doubles.sagemaker.machines import Machines
from tests.doubles.sagemaker.paging import page
from tests.doubles.sagemaker.showing import (
    cluster_description,
    event_summary,
    node_details,
    node_summary,
    operation_details,
    operation_summary,
)
from tests.doubles.sagemaker.state import FAILURE, RUNNING, Cluster, Node

Json = dict[str, Any]


class ServiceError(Exception):
    """A no of the service: code, HTTP status, words."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


class Answers:
    """The operations of one account with one cluster."""

    def __init__(self, machines: Machines, checks: HealthChecks) -> None:
        self._machines, self._checks = machines, checks
        self._cluster: Cluster = machines.cluster
        self._known: dict[str, Callable[[Json], Json]] = {
            "DescribeCluster": self._describe_cluster,
            "DescribeClusterNode": self._describe_node,
            "ListClusterNodes": self._list_nodes,
            "BatchReplaceClusterNodes": self._replace,
            "BatchRebootClusterNodes": self._reboot,
            "StartClusterHealthCheck": self._start_check,
            "ListClusterEvents": self._list_events,
            "ListClusterOperations": self._list_operations,
            "DescribeClusterOperation": self._describe_operation,
        }

    def answer(self, operation: str, asked: Json) -> Json:
        """Answer a request that keeps to the model; raise `ServiceError`."""
        handler = self._known.get(operation)
        if handler is None:
            raise ServiceError("UnknownOperationException", f"The double has no {operation}.")
        self._find_cluster(asked["ClusterName"])
        return handler(asked)

    def _missing(self, words: str) -> ServiceError:
        return ServiceError(self._cluster.missing_as, words)

    def _find_cluster(self, name: str) -> None:
        # By name, by ARN; the id alone is no name.
        if name not in (self._cluster.name, self._cluster.arn):
            raise self._missing(f"Could not find cluster '{name}'.")

    def _describe_cluster(self, asked: Json) -> Json:
        return cluster_description(self._cluster)

    def _describe_node(self, asked: Json) -> Json:
        wanted, logical = asked.get("NodeId"), asked.get("NodeLogicalId")
        if (wanted is None) == (logical is None):
            raise ServiceError("ValidationException", "Give either NodeId or NodeLogicalId.")
        for node in self._cluster.nodes.values():
            if wanted == node.instance_id or (logical and logical == node.logical_id):
                return {"NodeDetails": node_details(self._cluster, node)}
        raise self._missing(f"Could not find node '{wanted or logical}' in the cluster.")

    def _list_nodes(self, asked: Json) -> Json:
        part = asked.get("InstanceGroupNameContains", "")
        nodes = [node for node in self._cluster.nodes.values() if part in node.group]
        nodes.sort(
            key=lambda node: (
                node.group if asked.get("SortBy") == "NAME" else node.launched,
                node.instance_id,
            ),
            reverse=asked.get("SortOrder") == "Descending",
        )
        shown = [node_summary(self._cluster, node) for node in nodes]
        return page("ClusterNodeSummaries", shown, asked, self._cluster.page_limit)

    def _replace(self, asked: Json) -> Json:
        if not self._cluster.software_updated:
            words = "The cluster's software has to be updated once before nodes can be replaced."
            raise ServiceError("ValidationException", words)
        return self._batch(asked, lambda node: self._machines.replace(node, "replace"))

    def _reboot(self, asked: Json) -> Json:
        return self._batch(asked, lambda node: self._machines.reboot(node, "reboot"))

    def _batch(self, asked: Json, do: Callable[[Node], None]) -> Json:
        ids: list[str] = list(asked.get("NodeIds") or ())
        if not ids and not asked.get("NodeLogicalIds"):
            raise ServiceError("ValidationException", "Give NodeIds or NodeLogicalIds.")
        taken: list[str] = []
        failed: list[Json] = []
        for one in ids:
            node = self._cluster.nodes.get(one)
            no = self._why_not(node)
            if no is None and node is not None:
                do(node)
                taken.append(one)
            elif no is not None:
                failed.append({"NodeId": one, "ErrorCode": no[0], "Message": no[1]})
        # An empty list of successes is left out: the model allows none.
        return {"Failed": failed, **({"Successful": taken} if taken else {})}

    def _why_not(self, node: Node | None) -> tuple[str, str] | None:
        if node is None:
            return "InstanceIdNotFound", "The instance was not found in the cluster."
        if node.under_way in ("replace", "reboot", "check"):
            return "InstanceIdInUse", "Another operation is in progress on the instance."
        if node.status not in (RUNNING, FAILURE):
            words = f"Instance status {node.status} does not allow this operation."
            return "InvalidInstanceStatus", words
        if self._cluster.groups[node.group].slurm_role == "Controller":
            return "InvalidInstanceStatus", "A controller node does not allow this operation."
        return None

    def _start_check(self, asked: Json) -> Json:
        configurations: list[Json] = asked["DeepHealthCheckConfigurations"]
        for one in configurations:
            self._check_configuration(one)
        if self._checks.active() is not None and self._cluster.overlap == "refuse":
            words = "A deep health check operation is already in progress on this cluster."
            raise ServiceError("ValidationException", words)
        self._checks.start(configurations)
        return {"ClusterArn": self._cluster.arn}

    def _check_configuration(self, one: Json) -> None:
        group = self._cluster.groups.get(one["InstanceGroupName"])
        if group is None:
            words = f"Instance group {one['InstanceGroupName']} does not exist."
            raise ServiceError("ValidationException", words)
        if group.slurm_role in ("Controller", "Login"):
            words = f"Deep health checks are not for {group.slurm_role} nodes."
            raise ServiceError("ValidationException", words)
        for wanted in one.get("InstanceIds") or ():
            node = self._cluster.nodes.get(wanted)
            if node is None or node.group != group.name:
                words = f"Instance {wanted} is not in instance group {group.name}."
                raise ServiceError("ValidationException", words)

    def _list_events(self, asked: Json) -> Json:
        if not self._cluster.continuous:
            words = "Cluster events are for clusters with NodeProvisioningMode Continuous only."
            raise ServiceError("ValidationException", words)
        now = self._machines.clock.now()
        events = [
            event
            for event in self._machines.events
            if asked.get("NodeId") in (None, event.instance_id)
            and asked.get("InstanceGroupName") in (None, event.group)
            and event.at.timestamp() >= _seconds(asked.get("EventTimeAfter"), 0)
            and event.at.timestamp() <= _seconds(asked.get("EventTimeBefore"), now.timestamp() + 9)
        ]
        events.sort(key=lambda event: event.at, reverse=asked.get("SortOrder") != "Ascending")
        shown = [event_summary(self._cluster, event) for event in events]
        return page("Events", shown, asked, self._cluster.page_limit)

    def _list_operations(self, asked: Json) -> Json:
        found = [
            one
            for one in self._checks.operations
            if asked.get("Type") in (None, "DeepHealthCheck")
            and asked.get("Status") in (None, one.status)
            and one.created.timestamp() >= _seconds(asked.get("CreationTimeAfter"), 0)
        ]
        found.sort(key=lambda one: one.created, reverse=asked.get("SortOrder") != "Ascending")
        shown = [operation_summary(self._cluster, one) for one in found]
        return page("ClusterOperationSummaries", shown, asked, self._cluster.page_limit)

    def _describe_operation(self, asked: Json) -> Json:
        for one in self._checks.operations:
            if one.id == asked["OperationId"]:
                return operation_details(self._cluster, one)
        raise self._missing(f"Could not find operation '{asked['OperationId']}'.")


def _seconds(value: float | datetime | None, otherwise: float) -> float:
    if value is None:
        return otherwise
    return value.timestamp() if isinstance(value, datetime) else float(value)
