"""In which machines do the GPUs in doubt sit, and whose evidence is asked for with an alarm?"""

from __future__ import annotations

from datetime import datetime

from app.actions.alarm_dossier import Dossier
from app.actions.telemetry.planning import Plan, on_grid
from app.store import node_evidence
from app.store.connection import Connection
from app.store.intake.rank_map_rows import node_id
from app.store.node_evidence import Machine

MOST = 16
"""Machines of one alarm: where more are in doubt, no single one is."""


def machines_of(dossier: Dossier, planned: Plan) -> tuple[Machine, ...]:
    """List the machines that are named, then those of the suspects; each once, `MOST` of them."""
    found: dict[int, Machine] = {}
    for one in dossier.findings:
        if one.node_id is not None:
            cluster = dossier.facts.cluster
            found.setdefault(one.node_id, Machine(one.node_id, cluster, one.node, one.instance_id))
    for machine in homes(dossier, planned).values():
        found.setdefault(machine.node_id, machine)
    return tuple(found.values())[:MOST]


def homes(dossier: Dossier, planned: Plan) -> dict[str, Machine]:
    """Give the machine of each suspect by its UUID, as the alarm's own map has it."""
    if dossier.topology is None:
        return {}
    wanted = {one.uuid for one in planned.suspects}
    found: dict[str, Machine] = {}
    for place in dossier.topology.places.values():
        uuid, cluster = place.gpu_uuid, dossier.facts.cluster
        if uuid in wanted and uuid not in found:
            machine = node_id(cluster, place.node, place.instance_id)
            if machine is not None:
                found[uuid] = Machine(machine, cluster, place.node, place.instance_id)
    return found


def want(
    connection: Connection, alarm_id: int, dossier: Dossier, planned: Plan, now: datetime
) -> None:
    """Ask for the evidence of an alarm's machines over the time of its windows; once is enough.

    A recorded example has no machines.
    """
    machines = machines_of(dossier, planned)
    if machines and not dossier.facts.example:
        times = on_grid(planned.window.start, planned.window.end)
        node_evidence.want(connection, alarm_id, machines, times, now)
