"""How are a cluster, its machines, events and operations written in the service's JSON?"""

from __future__ import annotations

from typing import Any

from tests.doubles.sagemaker.state import ACCOUNT, Cluster, Event, Group, Node, Operation

Json = dict[str, Any]


def cluster_description(cluster: Cluster) -> Json:
    """Describe a cluster; fields that the real one leaves out are left out."""
    shown: Json = {
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ClusterStatus": "InService",
        "InstanceGroups": [_group(cluster, group) for group in cluster.groups.values()],
    }
    if cluster.orchestrator == "Eks":
        eks = f"arn:aws:eks:{cluster.region}:{ACCOUNT}:cluster/{cluster.name}-eks"
        shown["Orchestrator"] = {"Eks": {"ClusterArn": eks}}
    elif cluster.orchestrator == "Slurm":
        shown["Orchestrator"] = {"Slurm": {"SlurmConfigStrategy": "Managed"}}
    if cluster.node_recovery is not None:
        shown["NodeRecovery"] = cluster.node_recovery
    if cluster.continuous:
        shown["NodeProvisioningMode"] = "Continuous"
    if cluster.autoscaler is not None:
        shown["AutoScaling"] = {
            "Mode": "Enable",
            "AutoScalerType": cluster.autoscaler,
            "Status": "InService",
        }
    return shown


def _group(cluster: Cluster, group: Group) -> Json:
    nodes = [node for node in cluster.nodes.values() if node.group == group.name]
    shown: Json = {
        "InstanceGroupName": group.name,
        "InstanceType": group.instance_type,
        "CurrentCount": len(nodes),
        "TargetCount": group.target,
        "Status": "InService",
        "ExecutionRole": f"arn:aws:iam::{ACCOUNT}:role/hyperpod",
        "LifeCycleConfig": {
            "SourceS3Uri": "s3://sagemaker-lifecycle/base",
            "OnCreate": "on_create.sh",
        },
    }
    if group.checks_on_start:
        shown["OnStartDeepHealthChecks"] = list(group.checks_on_start)
    if group.patching is not None:
        schedule = {} if group.next_patch is None else {
            "CurrentPatchSchedule": {"NextPatchDate": group.next_patch.timestamp()}
        }  # fmt: skip
        shown["AutoPatchConfig"] = {"PatchingStrategy": group.patching, **schedule}
    if group.slurm_role is not None:
        shown["SlurmConfig"] = {"NodeType": group.slurm_role}
    return shown


def _status(node: Node) -> Json:
    return {"Status": node.status, **({"Message": node.message} if node.message else {})}


def node_summary(cluster: Cluster, node: Node) -> Json:
    """Give a machine's line in the list."""
    shown: Json = {
        "InstanceGroupName": node.group,
        "InstanceId": node.instance_id,
        "InstanceType": cluster.groups[node.group].instance_type,
        "LaunchTime": node.launched.timestamp(),
        "InstanceStatus": _status(node),
        "PrivateDnsHostname": node.host,
    }
    if cluster.continuous and node.logical_id:
        shown["NodeLogicalId"] = node.logical_id
    return shown


def node_details(cluster: Cluster, node: Node) -> Json:
    """Describe a machine: no GPU, no result of a check, no word on what replaced it."""
    return {
        **node_summary(cluster, node),
        "PrivatePrimaryIp": node.ip,
        "ThreadsPerCore": 2,
        "Placement": {
            "AvailabilityZone": f"{cluster.region}a",
            "AvailabilityZoneId": "usw2-az1",
        },
        "CapacityType": "OnDemand",
    }


def event_summary(cluster: Cluster, event: Event) -> Json:
    """Give an event's line in the list."""
    shown: Json = {
        "EventId": event.id,
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ResourceType": "Instance",
        "EventTime": event.at.timestamp(),
        "Description": event.words,
        "EventLevel": event.level,
    }
    if event.group:
        shown["InstanceGroupName"] = event.group
    if event.instance_id:
        shown["InstanceId"] = event.instance_id
    return shown


def operation_summary(cluster: Cluster, operation: Operation) -> Json:
    """Give the line of a request for deep health checks."""
    return {
        "OperationId": operation.id,
        "ClusterArn": cluster.arn,
        "Type": "DeepHealthCheck",
        "Status": operation.status,
        "CreationTime": operation.created.timestamp(),
    }


def operation_details(cluster: Cluster, operation: Operation) -> Json:
    """Describe a request for deep health checks: it echoes what was asked, and no result."""
    return {
        **operation_summary(cluster, operation),
        "DeepHealthCheckDetails": operation.configurations,
    }
