"""What can be asked of Google where a cluster is GKE: to repair the host of a machine?

Machines come and go through node pools there, and nobody replaces one by name: a GPU node is
labelled, a TPU host is reported. Deep health checks are a service of another provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Never

from app.cluster.errors import ClusterError, ClusterNotConfigured, ClusterRefused, MachineGone
from app.cluster.provider.compute import Compute, Host, host_of
from app.cluster.provider.ports import (
    Answer,
    Fleet,
    Machine,
    MachineAnswer,
    ProviderEvent,
    ProviderStatus,
    Report,
    TestRequest,
    TestRun,
)

OPERATION = "operation"


class GkeProvider:
    """Google as the owner of a GKE cluster's machines."""

    def __init__(self, name: str, project: str | None, compute: Compute) -> None:
        """Keep the name, the only project whose hosts may be reported, and the way there."""
        self._name, self._project, self._compute = name, project, compute

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for the cluster."""
        return self._name

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._compute.close()

    def load(self) -> None:
        """Do nothing: there is nothing to load."""

    def status(self) -> ProviderStatus:
        """Say what stands behind the name."""
        return ProviderStatus(self._name, "gke", "GKE: hosts are repaired by label or by report")

    def fleet(self) -> Fleet:
        """Say that it is GKE; groups and recovery are the node pools' own."""
        return Fleet(self._name, None, None, "gke", None, None, None, (), {})

    def machine(self, instance_id: str) -> Machine:
        """Raise: machines are known to Kubernetes, not by an instance id."""
        self._not_here(f"{instance_id} cannot be looked up")

    def machines(self, group: str | None = None) -> tuple[Machine, ...]:
        """Raise: see `machine`."""
        self._not_here("its machines cannot be listed")

    def replace(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Refuse: there is no such order."""
        return _refused(instance_ids, "GKE replaces no machine by name")

    def reboot(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Refuse: there is no such order."""
        return _refused(instance_ids, "GKE restarts no machine by name")

    def test(self, request: TestRequest) -> tuple[MachineAnswer, ...]:
        """Refuse: there is no such order."""
        members = [one for listed in request.machines.values() for one in listed]
        return _refused(members, "GKE has no deep health checks")

    def test_runs(self, since: datetime) -> tuple[TestRun, ...]:
        """Give none: there are none."""
        return ()

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """Give none: Kubernetes keeps them."""
        return ()

    def report_host(self, provider_id: str | None, why: str, order: str) -> MachineAnswer:
        """Report the host of a node as computing wrong, once."""
        host = self._host(provider_id)
        if isinstance(host, MachineAnswer):
            return host
        try:
            report = self._compute.report(host, why, order)
        except MachineGone as error:
            return MachineAnswer(
                host.instance, Answer.GONE, f"The machine is gone: {error.message}"
            )
        except ClusterRefused as error:
            words = f"{error.message} Nothing was reported."
            return MachineAnswer(host.instance, Answer.REFUSED, words)
        except ClusterError as error:
            kind = Answer.UNKNOWN if error.maybe_applied else Answer.FAILED
            return MachineAnswer(host.instance, kind, error.message)
        if report.error:
            words = f"Compute Engine would not report it: {report.error}."
            return MachineAnswer(host.instance, Answer.REFUSED, words)
        words = f"Compute Engine took the report about the host of {host.instance}."
        return MachineAnswer(
            host.instance, Answer.ACCEPTED, words, details={OPERATION: report.name}
        )

    def look_report(self, provider_id: str | None, operation: str) -> Report:
        """Read how far a report is; raises errors of a cluster."""
        host = self._host(provider_id)
        if isinstance(host, MachineAnswer):
            raise ClusterNotConfigured(host.message)
        return self._compute.look(host, operation)

    def _host(self, provider_id: str | None) -> Host | MachineAnswer:
        host = host_of(provider_id)
        if host is None:
            words = f"{provider_id or 'Nothing'} is no machine of Compute Engine."
            return MachineAnswer("", Answer.REFUSED, f"{words} Nothing was reported.")
        if self._project and host.project != self._project:
            words = f"{host.instance} is in project {host.project}, not in {self._project}."
            return MachineAnswer(host.instance, Answer.REFUSED, f"{words} Nothing was reported.")
        return host

    def _not_here(self, what: str) -> Never:
        raise ClusterNotConfigured(f"On GKE {what}: machines belong to node pools.")


def _refused(members: Sequence[str], why: str) -> tuple[MachineAnswer, ...]:
    return tuple(MachineAnswer(one, Answer.REFUSED, f"{why}. Nothing was sent.") for one in members)
