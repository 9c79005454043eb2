"""Did an alarm name the rank that was made faulty, and did it accuse a healthy one?

Judged as the service judges: by the findings and cautions of `witness.rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from witness.rules.alarm import Alarm, read_alarm
from witness.rules.findings import Finding, findings
from witness.rules.guards import BLOCKING
from witness.rules.ring import explain
from witness.rules.topology import Place, Topology

Outcome = Literal["named", "partly named", "ambiguous", "accused", "no alarm"]

OPEN = BLOCKING | {"three_node_ring", "three_replicas"}
"""Cautions under which a named rank may be healthy, as the caution itself says."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one trial.

    `named`: the faulty ranks and nobody else; `partly named`: some of them and nobody else;
    `ambiguous`: an alarm that settles nothing and says so; `accused`: a healthy rank is named as
    settled, the one thing that must not happen. `settled` are ranks named without reservation,
    `doubted` those named with one. `solved`: the one smallest explanation of all its comparisons
    is exactly the faulty ranks.
    """

    outcome: Outcome
    settled: tuple[int, ...] = ()
    doubted: tuple[int, ...] = ()
    solved: bool = False

    @property
    def right(self) -> bool:
        """Tell whether somebody was named, settled or not, and only faulty ranks were."""
        return self.outcome in {"named", "partly named"}


def judge(
    alarm: Mapping[str, Any] | None, faulty: frozenset[int], world_size: int, gpus_per_node: int
) -> Judgement:
    """Hold an alarm against the ranks that were faulty."""
    if alarm is None:
        return Judgement("no alarm")
    said = read_alarm(alarm)
    found = findings(said, _layout(world_size, gpus_per_node))
    settled = {one.rank for one in found if one.rank is not None and _is_settled(one)}
    everybody = {one.rank for one in found if one.rank is not None}
    solved = _explained(said, world_size) == faulty
    named = tuple(sorted(settled)), tuple(sorted(everybody - settled)), solved
    if settled - faulty:
        return Judgement("accused", *named)
    if not everybody or everybody - faulty:
        return Judgement("ambiguous", *named)
    return Judgement("named" if everybody == faulty else "partly named", *named)


def _explained(alarm: Alarm, world_size: int) -> frozenset[int] | None:
    """Give the ranks of the only smallest explanation; None where there are several, or none."""
    groups = explain(alarm.audits(alarm.peer_offset), world_size)
    if not groups or any(len(one.sets) != 1 for one in groups):
        return None
    return frozenset(rank for one in groups for rank in one.sets[0].faulty)


def _is_settled(finding: Finding) -> bool:
    doubts = {caution.code for caution in finding.cautions}
    return finding.rule is not None and not finding.ambiguous and doubts.isdisjoint(OPEN)


def _layout(world_size: int, gpus_per_node: int) -> Topology:
    places = [Place(rank, f"node-{rank // gpus_per_node}") for rank in range(world_size)]
    return Topology.from_places(places, world_size, gpus_per_node, gpus_per_node)
