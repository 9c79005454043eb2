"""What may the rest of the service ask of whoever owns a cluster's machines, and what is answered?

A provider (SageMaker HyperPod, a cloud) replaces, restarts and tests machines; Kubernetes does not.
Readings raise an error of `app.cluster.errors`. Orders never raise one: whatever happens becomes
one `MachineAnswer` a machine, since an approval must always end in a recorded outcome. An order is
sent at most once, by a client that repeats nothing by itself: there is no token that would make a
second one harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

RUNNING = "Running"
FAILURE = "Failure"  # not "Failed"
PENDING = "Pending"
SHUTTING_DOWN = "ShuttingDown"
TESTING = "DeepHealthCheckInProgress"
CHECKS = ("InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation")
"""The provider's own names of its deep health checks."""


class Answer(StrEnum):
    """What became of an order for one machine."""

    ACCEPTED = "accepted"  # the order was taken; its effect shows later, if at all
    UNDER_WAY = "under_way"  # something is done to the machine already, so nothing was ordered
    REFUSED = "refused"  # the provider's no, or ours before sending: nothing was ordered
    GONE = "gone"  # the provider knows no such machine: final
    FAILED = "failed"  # the provider failed and says so: not done, may be asked again by a person
    UNKNOWN = "unknown"  # it was sent, and nobody knows whether it was taken
    DRY_RUN = "dry_run"  # no provider is configured, or it only records: nothing was sent


@dataclass(frozen=True, slots=True)
class MachineAnswer:
    """What became of an order for one machine; `code` is the provider's own word, None: none."""

    instance_id: str
    answer: Answer
    message: str
    code: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine as its provider described it at one moment."""

    instance_id: str
    group: str | None
    status: str  # the provider's own word
    message: str | None  # sticky: it can be about an earlier failure
    logical_id: str | None  # only where the provider keeps one through a machine's life
    instance_type: str | None
    launched_at: datetime | None
    host: str | None  # its private host name
    zone: str | None
    labels: Mapping[str, str]
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Group:
    """Machines of one kind that are counted, patched and tested together."""

    name: str
    instance_type: str | None
    status: str | None
    current: int | None
    target: int | None
    patching: str | None  # WhenIdle, DrainFirst ...; these lift cordons. None: not said
    next_patch_at: datetime | None
    checks_on_start: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """A cluster as its provider described it; None wherever it does not say."""

    name: str
    id: str | None  # HyperPod: the 12 characters at the end of the ARN, not the name
    status: str | None
    orchestrator: str | None  # "eks", "slurm"
    node_recovery: str | None  # "Automatic", "None"
    continuous: bool | None  # machines keep a logical id, and events can be listed
    autoscaler: str | None  # "Karpenter": a replacement comes only if pods wait for one
    groups: tuple[Group, ...]
    raw: Mapping[str, Any] = field(repr=False)

    def group(self, name: str | None) -> Group | None:
        """Find a group by name."""
        return next((one for one in self.groups if one.name == name), None)


@dataclass(frozen=True, slots=True)
class TestRequest:
    """Deep health checks for named machines; a group without machines would mean all of it."""

    __test__ = False  # no test of ours

    machines: Mapping[str, tuple[str, ...]]  # group -> instance ids, never empty
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TestRun:
    """One request for deep health checks as the provider lists it: no word on who passed."""

    __test__ = False

    id: str
    status: str  # InProgress, Superseded, Done
    created_at: datetime | None
    machines: Mapping[str, tuple[str, ...]]
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProviderEvent:
    """One event that the provider lists; two of them can be about one thing."""

    id: str
    at: datetime
    level: str | None  # Info, Warn, Error
    group: str | None
    instance_id: str | None
    words: str
    operation_id: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """What stands behind a provider's name, known without asking it."""

    name: str
    kind: str  # "hyperpod", "gke", "dry run", "recording" or "misconfigured"
    message: str

    @property
    def can_act(self) -> bool:
        """Tell whether an order would be sent."""
        return self.kind in ("hyperpod", "gke")


class ProviderPort(Protocol):
    """The owner of one cluster's machines, real or not."""

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for the cluster."""
        ...

    def status(self) -> ProviderStatus:
        """Say what stands behind the name; asks nobody, never raises."""
        ...

    def fleet(self) -> Fleet:
        """Read the cluster: recovery mode, autoscaler, groups."""
        ...

    def machine(self, instance_id: str) -> Machine:
        """Read one machine; raise `MachineGone` if the provider knows none of this id."""
        ...

    def machines(self, group: str | None = None) -> tuple[Machine, ...]:
        """Read all machines, or those of a group, page by page."""
        ...

    def replace(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order that machines be replaced, once; an answer for each, in their order."""
        ...

    def reboot(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order that machines be restarted, once; an answer for each, in their order."""
        ...

    def test(self, request: TestRequest) -> tuple[MachineAnswer, ...]:
        """Order deep health checks, once; machines that fail may be restarted or replaced."""
        ...

    def test_runs(self, since: datetime) -> tuple[TestRun, ...]:
        """List the requests for deep health checks since a time, the newest first."""
        ...

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """List events of a machine, or of all, the oldest first; () where it keeps none."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """How far the report about a host is: the provider's operation, its state, what went wrong."""

    name: str
    status: str  # PENDING, RUNNING, DONE
    error: str | None


@runtime_checkable
class HostReporter(Protocol):
    """A provider that repairs the host of a machine once somebody reports it."""

    def report_host(self, provider_id: str | None, why: str, order: str) -> MachineAnswer:
        """Report the host of a node as computing wrong, once; `order` names the order."""
        ...

    def look_report(self, provider_id: str | None, operation: str) -> Report:
        """Read how far a report is."""
        ...
