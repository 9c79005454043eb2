"""Does every row of the fault table come out as published, on real processes?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.actions.service import Person, Service
from witness import wire
from witness.simulate.model import Job
from witness.simulate.scenarios import Alarm, Layout, scenarios
from witness.simulate.table import Row, run_table

CONTRADICTIONS = {
    "digests_disagree",
    "culprits_disagree",
    "verdict_contradicts",
    "window_disagrees",
}


@pytest.mark.timeout(300)
def test_three_ranks_see_every_row_and_the_service_reads_it_so(service: Service) -> None:
    rows = run_table(Layout(3, 1), Job(), timeout_s=100)
    assert [one.said for one in rows if not one.met] == []
    assert len(rows) == 21
    every_row_reads_the_same(service, Layout(3, 1), rows)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("nodes", [3, 4])
def test_nodes_of_eight_ranks_see_every_row(nodes: int, service: Service) -> None:
    rows = run_table(Layout(nodes, 8), Job(), timeout_s=1600)
    assert [one.said for one in rows if not one.met] == []
    assert len(rows) == 22
    every_row_reads_the_same(service, Layout(nodes, 8), rows)


def every_row_reads_the_same(service: Service, layout: Layout, rows: list[Row]) -> None:
    """Post each row's alarm as a job of its own; the service must come to what the row says."""
    person = service.person("viewer", f"viewer of {layout.nodes} by {layout.gpus}")
    for place, row in enumerate(rows):
        if row.seen.document is not None:
            name = f"row {place} of {layout.nodes} by {layout.gpus}"
            reads_the_same(service, person, layout, name, row.seen.document)


def reads_the_same(
    service: Service, person: Person, layout: Layout, name: str, document: dict[str, Any]
) -> None:
    said = Alarm.read(document)
    envelope = wire.Envelope("simulated", "rows", name, 1)
    ranks = [
        {"rank": rank, "node": f"{name}, node {rank // layout.gpus}", "gpu_uuid": f"{name}/{rank}"}
        for rank in range(layout.world_size)
    ]
    service.post(
        wire.rank_map(envelope, ranks, layout.world_size, layout.gpus, layout.gpus),
        wire.alarm(envelope, document, 0),
    )
    (listed,) = service.read("/alarms", job=name)["items"]
    read = service.read(f"/alarms/{listed['id']}")
    assert (read["check"], read["step"]) == (said.check, said.step)
    assert tuple(read["suspect_window"]) == said.window
    found = read["findings"]
    assert {(one["rule"], one["rank"]) for one in found} == rules(said)
    placed = [one for one in found if one["rank"] is not None]
    assert all(one["node"] == ranks[one["rank"]]["node"] for one in placed)
    cautions = {caution["code"] for one in found for caution in one["cautions"]}
    assert cautions.isdisjoint(CONTRADICTIONS)
    page = person.get(f"/alarms/{listed['id']}")
    for one in placed:
        assert one["node"] in page
        assert f"rank {one['rank']}" in page


def rules(said: Alarm) -> set[tuple[str, int | None]]:
    """Give the rows of the decision table, and whom each is about, that an alarm must come to."""
    found: set[tuple[str, int | None]] = {("R1", rank) for rank in said.culprits}
    found |= {("R3", suspect) for _, _, suspect, kind in said.verdicts if kind == "transient"}
    found |= {("W1", rank) for rank in said.suspects or ()}
    return found | ({("G1", None)} if said.check == "reduced gradient" else set())


def test_the_peers_of_four_nodes_are_the_published_ones() -> None:
    expected = {one.name: one.expected for one in scenarios(Layout(4, 8))}
    pairs = {name: alarm.pairs for name, alarm in expected.items() if alarm is not None}
    assert pairs["×1000, from 23"] == ((13, 5), (21, 13))
    assert pairs["×1000 on its replayer, from 23"] == ((5, 29), (13, 5))
    assert pairs["×1000 on two ranks, from 23"] == ((13, 5), (21, 13), (22, 14), (30, 22))
    assert pairs["bit 22 of a weight, checkpoints every 5 unchecked"] == ((0, 24), (8, 0))
    once = expected["×1000, once at audit step 30"]
    assert once is not None
    assert once.verdicts == (((13, 5), 21, 13, "transient"),)


def test_one_published_fault_is_missed_and_only_one() -> None:
    missed = [one.name for one in scenarios(Layout(4, 8)) if one.published and one.expected is None]
    assert missed == ["weight gradient ×1000, default-kernel audits: missed"]
