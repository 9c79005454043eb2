"""What is a cluster of the double made of?"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

RUNNING, FAILURE, PENDING = "Running", "Failure", "Pending"
SHUTTING_DOWN, UPDATING, TESTING = "ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress"
ACCOUNT = "111122223333"


@dataclass
class Timings:
    """How long each step takes on the double's clock."""

    shut_down: timedelta = timedelta(minutes=6)
    start: timedelta = timedelta(minutes=17)  # from asking for a machine to its running
    reboot: timedelta = timedelta(minutes=8)
    check_begins: timedelta = timedelta(minutes=1)
    check: timedelta = timedelta(minutes=70)
    check_on_start: timedelta = timedelta(minutes=50)
    busy_wait: timedelta = timedelta(minutes=10)


@dataclass
class Node:
    """One machine."""

    instance_id: str
    group: str
    ip: str
    launched: datetime
    logical_id: str | None = None
    status: str = RUNNING
    message: str | None = None  # stays after a failure is over, as the real one does
    busy: bool = False  # a job runs on it: a deep health check passes it over
    # What a deep health check does with it: pass, fail, reboot, replace, silent, stuck.
    check_ends: str = "pass"
    under_way: str | None = None  # "replace", "reboot", "check", or "platform"
    replaced_by: str | None = None
    bootings: int = 1

    @property
    def host(self) -> str:
        return f"ip-{self.ip.replace('.', '-')}.us-west-2.compute.internal"


@dataclass
class Group:
    """One instance group."""

    name: str
    instance_type: str = "ml.p5.48xlarge"
    patching: str | None = None
    next_patch: datetime | None = None
    checks_on_start: tuple[str, ...] = ()
    slurm_role: str | None = None  # "Controller", "Login", "Compute"
    target: int = 0


@dataclass
class Cluster:
    """One cluster and the switches of its behaviour."""

    name: str = "alpine"
    id: str = "4k2xq9mlunpa"
    region: str = "us-west-2"
    orchestrator: str | None = "Eks"  # "Eks", "Slurm"
    node_recovery: str | None = "Automatic"
    continuous: bool = True
    autoscaler: str | None = None  # "Karpenter": only pods that wait bring a machine back
    pods_pending: bool = False
    keeps_logical_id: bool = True
    software_updated: bool = True  # UpdateClusterSoftware ran once; without it nothing is replaced
    replacement_fails: bool = False
    overlap: str = "refuse"  # of two requests for checks: "refuse", "merge" or "supersede"
    missing_as: str = "ResourceNotFound"  # or "ValidationException"
    page_limit: int = 100
    nodes: dict[str, Node] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)

    @property
    def arn(self) -> str:
        return f"arn:aws:sagemaker:{self.region}:{ACCOUNT}:cluster/{self.id}"


@dataclass
class Operation:
    """One request for deep health checks, as ListClusterOperations shows it."""

    created: datetime
    configurations: list[dict[str, Any]]
    status: str = "InProgress"
    waits_for: set[str] = field(default_factory=set)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Event:
    """One event; a fault makes two of them, a second apart."""

    at: datetime
    words: str
    level: str
    group: str | None
    instance_id: str | None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
