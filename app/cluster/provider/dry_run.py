"""What does a provider answer that nobody has configured, or not so that it can be used?

That nothing was asked and nothing was ordered.
"""

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

    _kind = "dry run"
    _answer = Answer.DRY_RUN

    def __init__(self, name: str) -> None:
        """Keep the name."""
        self._name = name
        self._words = f"dry run: no provider of machines is configured for {name or 'this name'}"

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for the cluster."""
        return self._name

    def status(self) -> ProviderStatus:
        """Say that there is nothing usable behind the name."""
        return ProviderStatus(self._name, self._kind, self._words)

    def _nothing(self) -> Never:
        raise ClusterNotConfigured(self._words)

    def _none(self, instance_ids: Sequence[str], what: str) -> tuple[MachineAnswer, ...]:
        words = f"{self._words.rstrip('.')}. It would have been {what}; nothing was sent."
        return tuple(MachineAnswer(one, self._answer, words) for one in instance_ids)

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
        return self._none(instance_ids, "replaced")

    def reboot(self, instance_ids: Sequence[str]) -> tuple[MachineAnswer, ...]:
        """Order nothing and say so."""
        return self._none(instance_ids, "restarted")

    def test(self, request: TestRequest) -> tuple[MachineAnswer, ...]:
        """Order nothing and say so."""
        return self._none([one for ids in request.machines.values() for one in ids], "tested")

    def test_runs(self, since: datetime) -> tuple[TestRun, ...]:
        """Raise: there is nobody to ask."""
        self._nothing()

    def events(self, instance_id: str | None, since: datetime) -> tuple[ProviderEvent, ...]:
        """Raise: there is nobody to ask."""
        self._nothing()


class MisconfiguredProvider(DryRunProvider):
    """A provider whose entry in the setting cannot be used: it refuses everything and says why."""

    _kind = "misconfigured"
    _answer = Answer.REFUSED

    def __init__(self, name: str, why: str) -> None:
        """Keep what is wrong with the entry."""
        super().__init__(name)
        self._words = f"The entry of {name} in WITNESS_PROVIDERS cannot be used: {why}."
