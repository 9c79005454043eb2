"""What do the records of a machine add to the reading of a GPU's telemetry?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.actions.telemetry.machines import Placed, homes
from app.actions.telemetry.planning import Plan
from app.store import node_evidence, node_records
from app.store.connection import Connection
from app.store.node_evidence import Evidence
from app.store.node_records import KeptRecord
from witness.rules import words
from witness.rules.node_faults import NodeFault
from witness.rules.node_records import faults_around, further_observations
from witness.rules.observations import Observation, Window
from witness.rules.samples import Series
from witness.rules.xid import pci_address

MOST_RECORDS = 20_000
Stamp = set[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Further:
    """The records around one alarm, by machine; `stamp` says which questions they rest on."""

    window: Window
    machines: Mapping[str, int]  # machine of each suspect
    records: Sequence[KeptRecord]
    asked: Sequence[Evidence]
    faults: dict[int, tuple[NodeFault, ...]] = field(default_factory=dict)  # found when needed

    @property
    def stamp(self) -> Stamp:
        """Say what the observations rest on, to be compared with `stamp_of` later."""
        return _stamp(self.asked)

    def of(self, uuid: str, series: Iterable[Series]) -> tuple[Observation, ...]:
        """Give the observations about one suspect; its samples say at which address it sits."""
        machine = self.machines.get(uuid)
        if machine is None:
            return ()
        told = {text for one in series if one.gpu_uuid == uuid for text in one.seen.pci}
        pci = sorted({one for one in map(pci_address, told) if one is not None})
        if machine not in self.faults:
            # GPUs of one machine share its records, which can be thousands of lines.
            mine = [one.record for one in self.records if one.node_id == machine]
            self.faults[machine] = faults_around(self.window, mine)
        return further_observations(self.window, self.faults[machine], pci)

    def notes(self, uuid: str) -> tuple[str, ...]:
        """Say what is to be known of the evidence about a suspect's machine: refused, cut, gone."""
        what = {"log": "The log of its machine", "node": "The state of its machine"}
        machine = self.machines.get(uuid)
        return tuple(
            f"{what[one.kind]}: {words.cut(one.said, 300)}"
            for one in self.asked
            if one.node_id == machine and one.said and one.state != node_evidence.NO_WAY
        )


def read_further(connection: Connection, known: Placed, planned: Plan) -> Further:
    """Read what was collected about the machines of an alarm."""
    asked = node_evidence.of_alarm(connection, known.facts.id)
    records = node_records.of_evidence(connection, asked, MOST_RECORDS) if asked else []
    machines = {uuid: one.node_id for uuid, one in homes(known, planned).items()} if asked else {}
    return Further(planned.window, machines, records, asked)


def stamp_of(connection: Connection, alarm_id: int) -> Stamp:
    """Say which questions about an alarm's machines are answered, and when they were."""
    return _stamp(node_evidence.of_alarm(connection, alarm_id))


def _stamp(asked: Iterable[Evidence]) -> Stamp:
    return {("node", one.id, one.read_at, one.said) for one in asked}
