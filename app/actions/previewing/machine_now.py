"""What does the owner of a cluster's machines say of a machine and its cluster now?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.reaching import provider_of
from app.cluster.errors import ClusterError, ClusterNotConfigured, MachineGone
from app.cluster.provider.ports import Fleet, Group, Machine
from app.context import Context
from app.store.proposals import Proposal


@dataclass(frozen=True, slots=True)
class MachineNow:
    """What the provider said; each error is a sentence where nothing was read.

    `configured` False: there is nobody to ask. `gone`: the provider knows no such machine.
    """

    configured: bool
    words: str
    fleet: Fleet | None = None
    fleet_error: str | None = None
    machine: Machine | None = None
    machine_error: str | None = None
    gone: bool = False

    @property
    def status(self) -> str | None:
        """Give the provider's word for how the machine stands; None: not known."""
        return None if self.machine is None else self.machine.status

    def group(self, label: str | None = None) -> Group | None:
        """Find the machine's instance group, else the one that a node's label names."""
        if self.fleet is None:
            return None
        name = self.machine.group if self.machine is not None else label
        return self.fleet.group(name)


def read_machine(context: Context, proposal: Proposal) -> MachineNow:
    """Read cluster and machine at the provider; never raises an error of a provider."""
    provider = provider_of(context, proposal.cluster)
    status = provider.status()
    fleet: Fleet | None = None
    fleet_error: str | None = None
    try:
        fleet = provider.fleet()
    except ClusterNotConfigured as error:
        return MachineNow(status.kind != "dry run", error.message, fleet_error=error.message)
    except ClusterError as error:
        fleet_error = error.message
    if not proposal.instance_id:
        why = "The instance of this node is not known."
        return MachineNow(True, status.message, fleet, fleet_error, machine_error=why)
    if fleet_error is not None:
        # A provider that does not answer is not asked a second time by one look.
        return MachineNow(True, status.message, None, fleet_error, machine_error=fleet_error)
    try:
        machine = provider.machine(proposal.instance_id)
    except MachineGone as error:
        return MachineNow(
            True, status.message, fleet, machine_error=error.message, gone=True
        )  # fmt: skip
    except ClusterError as error:
        return MachineNow(True, status.message, fleet, machine_error=error.message)
    return MachineNow(True, status.message, fleet, machine=machine)
