"""What does a provider answer that nobody has configured? That nothing was asked or ordered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Never

from app.cluster.errors import ClusterNotConfigured
from app.cluster.provider.ports import (
    Answer,
    Fleet,
    Machine,
    MachineAnswer,
    ProviderEvent,
    ProviderStatus,
    TestRequest,
    TestRun,
)


class DryRunProvider:
    """A provider that is only a name: every order is recorded as a dry run."""

    def __init__(self, name: str) -> None:
        """Keep the name."""
        self._name = name

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for the cluster."""
        return self._name

    @property
    def _words(self) -> str:
        return f"dry run: no provider is configured for {self._name or 'this name'}"

    def _nothing(self) -> Never:
        raise ClusterNotConfigured(f"{self._words}.")

    def status(self) -> ProviderStatus:
        """Say that there is nothing behind the name."""
        return ProviderStatus(self._name, "dry run", self._words)

    def fleet(self) -> Fleet:
        """Raise: there is nobody to ask."""
        self._nothing()

    def machine(self, instance_id: str) -> Machine:
        """Raise: whether there is such a machine is not known, which is not the same as gone."""
        self._nothing()

    def machines(self, group: str | None = None) -> tuple[Machine, ...]:
        """Raise: an empty list would say that there are none."""
        self._nothing()

    def replace(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order nothing and say so."""
        return self._not_done(instance_ids, "replaced")

    def reboot(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order nothing and say so."""
        return self._not_done(instance_ids, "restarted")

    def test(self, request: TestRequest) -> tuple[MachineAnswer, ...]:
        """Order nothing and say so."""
        members = [one for listed in request.machines.values() for one in listed]
        return self._not_done(members, "tested")

    def test_runs(self, since: datetime) -> tuple[TestRun, ...]:
        """Raise: an empty list would say that nothing was tested."""
        self._nothing()

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """Raise: an empty list would say that nothing happened."""
        self._nothing()

    def _not_done(self, members: Sequence[str], what: str) -> tuple[MachineAnswer, ...]:
        return tuple(
            MachineAnswer(
                one, Answer.DRY_RUN, f"{self._words}. {one} would have been {what}; nothing was."
            )
            for one in members
        )
