"""What do SageMaker's descriptions of a cluster and of its machines say?

Missing parts become None or empty, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.cluster.provider.calls import as_json
from app.cluster.provider.ports import Fleet, Group, Machine, ProviderEvent, TestRun

_ID_IN_ARN = re.compile(r":cluster/([a-z0-9]{12})$")
SLURM_NODES_WITHOUT_CHECKS = ("Controller", "Login")


def read_machine(raw: Mapping[str, Any]) -> Machine:
    """Read the details of one machine, or its line in a list, which says less."""
    status = raw.get("InstanceStatus") or {}
    labels = (raw.get("KubernetesConfig") or {}).get("CurrentLabels") or {}
    return Machine(
        instance_id=str(raw.get("InstanceId") or ""),
        group=raw.get("InstanceGroupName"),
        status=str(status.get("Status") or "unknown"),
        message=status.get("Message") or None,
        logical_id=raw.get("NodeLogicalId") or None,
        instance_type=raw.get("InstanceType"),
        launched_at=moment(raw.get("LaunchTime")),
        host=raw.get("PrivateDnsHostname"),
        zone=(raw.get("Placement") or {}).get("AvailabilityZone"),
        labels={str(key): str(text) for key, text in labels.items()},
        raw=as_json(raw),
    )


def read_fleet(raw: Mapping[str, Any], asked_for: str) -> Fleet:
    """Read the description of a cluster; `asked_for` is the name or ARN that it was asked by."""
    arn = _ID_IN_ARN.search(str(raw.get("ClusterArn") or ""))
    scaling = raw.get("AutoScaling") or {}
    return Fleet(
        name=str(raw.get("ClusterName") or asked_for),
        id=arn.group(1) if arn else None,
        status=raw.get("ClusterStatus"),
        orchestrator=_orchestrator(raw.get("Orchestrator")),
        node_recovery=raw.get("NodeRecovery"),
        # The field is only there where the cluster provisions continuously.
        continuous=raw.get("NodeProvisioningMode") == "Continuous",
        autoscaler=_autoscaler(scaling),
        groups=tuple(_group(one) for one in _groups(raw)),
        raw=as_json(raw),
    )


def _orchestrator(value: Mapping[str, Any] | None) -> str | None:
    """Name what orchestrates; a union with one member, None where the field is not there."""
    if not value:
        return None
    return next((name.lower() for name in ("Eks", "Slurm") if name in value), None)


def _autoscaler(scaling: Mapping[str, Any]) -> str | None:
    if scaling.get("Mode") != "Enable":
        return None
    return str(scaling.get("AutoScalerType") or "Karpenter")


def _groups(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(raw.get("InstanceGroups") or ()), *(raw.get("RestrictedInstanceGroups") or ())]


def _group(raw: Mapping[str, Any]) -> Group:
    patching = raw.get("AutoPatchConfig") or {}
    schedule = patching.get("CurrentPatchSchedule") or {}
    return Group(
        name=str(raw.get("InstanceGroupName") or ""),
        instance_type=raw.get("InstanceType"),
        status=raw.get("Status"),
        current=raw.get("CurrentCount"),
        target=raw.get("TargetCount"),
        patching=patching.get("PatchingStrategy"),
        next_patch_at=moment(schedule.get("NextPatchDate")),
        checks_on_start=tuple(raw.get("OnStartDeepHealthChecks") or ()),
    )


def slurm_role(fleet: Fleet, group: str | None) -> str | None:
    """Give what a group is in a Slurm cluster ("Controller", "Login", "Compute"); None: not said.

    Controllers can neither be replaced nor tested.
    """
    for raw in _groups(fleet.raw):
        if raw.get("InstanceGroupName") == group:
            role = (raw.get("SlurmConfig") or {}).get("NodeType")
            return None if role is None else str(role)
    return None


def read_event(raw: Mapping[str, Any]) -> ProviderEvent | None:
    """Read one event; None where it has no time, so that it can prove nothing."""
    at = moment(raw.get("EventTime"))
    if at is None:
        return None
    return ProviderEvent(
        id=str(raw.get("EventId") or ""),
        at=at,
        level=raw.get("EventLevel"),
        group=raw.get("InstanceGroupName"),
        instance_id=raw.get("InstanceId"),
        words=str(raw.get("Description") or ""),
        operation_id=raw.get("OperationId"),
    )


def read_run(raw: Mapping[str, Any]) -> TestRun:
    """Read one request for deep health checks; a group without ids stands for the whole group."""
    parts = raw.get("DeepHealthCheckDetails") or ()
    checks = [check for part in parts for check in part.get("DeepHealthChecks") or ()]
    machines: dict[str, tuple[str, ...]] = {}
    whole: set[str] = set()
    for part in parts:
        name, ids = str(part.get("InstanceGroupName") or ""), part.get("InstanceIds") or ()
        machines[name] = (*machines.get(name, ()), *ids)
        if not ids:
            whole.add(name)
    return TestRun(
        id=str(raw.get("OperationId") or ""),
        status=str(raw.get("Status") or "unknown"),
        created_at=moment(raw.get("CreationTime")),
        machines={name: () if name in whole else ids for name, ids in machines.items()},
        checks=tuple(dict.fromkeys(str(check) for check in checks)),
    )


def moment(value: object) -> datetime | None:
    """Give a time in UTC; None where there is none."""
    if not isinstance(value, datetime):
        return None
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
