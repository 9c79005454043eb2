"""In which machines do the GPUs in doubt sit, and whose evidence is asked for with an alarm?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.actions.telemetry.planning import Plan, on_grid
from app.store import node_evidence
from app.store.alarm_reading import AlarmFacts, StoredFinding
from app.store.connection import Connection
from app.store.intake.rank_map_rows import node_id
from app.store.node_evidence import Machine
from witness.rules.topology import Topology

MOST = 16
"""Machines of one alarm: where more are in doubt, no single one is."""


class Placed(Protocol):
    """What is known of an alarm and of where its ranks ran."""

    @property
    def facts(self) -> AlarmFacts:
        """Give its own row."""

    @property
    def topology(self) -> Topology | None:
        """Give the layout, None where there is none."""

    @property
    def findings(self) -> tuple[StoredFinding, ...]:
        """Give whom it names."""


def machines_of(known: Placed, planned: Plan) -> tuple[Machine, ...]:
    """List the machines that are named, then those of the suspects; each once, `MOST` of them."""
    found: dict[int, Machine] = {}
    for one in known.findings:
        if one.node_id is not None:
            cluster = known.facts.cluster
            found.setdefault(one.node_id, Machine(one.node_id, cluster, one.node, one.instance_id))
    for machine in homes(known, planned).values():
        found.setdefault(machine.node_id, machine)
    return tuple(found.values())[:MOST]


def homes(known: Placed, planned: Plan) -> dict[str, Machine]:
    """Give the machine of each suspect by its UUID, as the alarm's own map has it."""
    if known.topology is None:
        return {}
    wanted = {one.uuid for one in planned.suspects}
    found: dict[str, Machine] = {}
    for place in known.topology.places.values():
        uuid, cluster = place.gpu_uuid, known.facts.cluster
        if uuid in wanted and uuid not in found:
            machine = node_id(cluster, place.node, place.instance_id)
            if machine is not None:
                found[uuid] = Machine(machine, cluster, place.node, place.instance_id)
    return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose evidence over which time an alarm asks for; worked out before a transaction begins."""

    machines: tuple[Machine, ...]
    times: tuple[datetime, datetime]

    def ask(self, connection: Connection, alarm_id: int, now: datetime) -> None:
        """Ask for it; once is enough."""
        node_evidence.want(connection, alarm_id, self.machines, self.times, now)


def wanted(known: Placed, planned: Plan) -> Wanted:
    """Work out what an alarm asks for over the time of its windows; a recorded example nothing."""
    machines = () if known.facts.example else machines_of(known, planned)
    return Wanted(machines, on_grid(planned.window.start, planned.window.end))
