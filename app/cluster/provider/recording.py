"""What would have been ordered? Reads a real provider, and writes its orders down unsent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.cluster.errors import ClusterNotConfigured
from app.cluster.order_file import OrderFile
from app.cluster.provider.ports import (
    Answer,
    Fleet,
    HostReporter,
    Machine,
    MachineAnswer,
    ProviderEvent,
    ProviderPort,
    ProviderStatus,
    Report,
    TestRequest,
    TestRun,
)


class RecordingProvider:
    """A provider whose questions are real and whose orders end in a file."""

    def __init__(self, real: ProviderPort, file: OrderFile) -> None:
        """Take the provider that is read, and the file."""
        self._real, self._file = real, file

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for the cluster."""
        return self._real.name

    def status(self) -> ProviderStatus:
        """Say that orders are only recorded; a broken entry is told as such."""
        real = self._real.status()
        if not real.can_act:
            return real
        words = f"{real.message}; orders are only written to {self._file.path}"
        return ProviderStatus(real.name, "recording", words)

    def fleet(self) -> Fleet:
        """Read the cluster."""
        return self._real.fleet()

    def machine(self, instance_id: str) -> Machine:
        """Read one machine."""
        return self._real.machine(instance_id)

    def machines(self, group: str | None = None) -> tuple[Machine, ...]:
        """Read all machines, or those of a group."""
        return self._real.machines(group)

    def test_runs(self, since: datetime) -> tuple[TestRun, ...]:
        """List the requests for deep health checks."""
        return self._real.test_runs(since)

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """List events."""
        return self._real.events(instance_id, since)

    def replace(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Write down that machines would have been replaced."""
        return self._keep("replace", instance_ids, {"instance_ids": list(instance_ids)})

    def reboot(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Write down that machines would have been restarted."""
        return self._keep("reboot", instance_ids, {"instance_ids": list(instance_ids)})

    def test(self, request: TestRequest) -> tuple[MachineAnswer, ...]:
        """Write down that machines would have been tested."""
        machines = {group: list(ids) for group, ids in request.machines.items()}
        ids = [one for group in machines.values() for one in group]
        return self._keep("test", ids, {"machines": machines, "checks": list(request.checks)})

    def report_host(self, provider_id: str | None, why: str, order: str) -> MachineAnswer:
        """Write down that a host would have been reported."""
        if not isinstance(self._real, HostReporter):
            words = "This provider takes no reports about hosts. Nothing was sent."
            return MachineAnswer("", Answer.REFUSED, words)
        asked = {"provider_id": provider_id, "why": why, "proposal": order}
        (answer,) = self._keep("report_host", [provider_id or ""], asked)
        return answer

    def look_report(self, provider_id: str | None, operation: str) -> Report:
        """Read how far a report is."""
        if not isinstance(self._real, HostReporter):
            raise ClusterNotConfigured("This provider takes no reports about hosts.")
        return self._real.look_report(provider_id, operation)

    def _keep(
        self, order: str, instance_ids: Sequence[str], asked: Mapping[str, Any]
    ) -> tuple[MachineAnswer, ...]:
        wrong = self._file.keep(self.name, order, asked)
        if wrong is not None:
            words = f"Orders are only recorded here, and {wrong}. Nothing was sent."
            return tuple(MachineAnswer(one, Answer.FAILED, words) for one in instance_ids)
        words = f"Orders are only recorded here: {order} was written down, nothing was sent."
        return tuple(MachineAnswer(one, Answer.DRY_RUN, words) for one in instance_ids)
