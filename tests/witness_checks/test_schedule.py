"""When does which check run, and does turning the offset tell two faulty GPUs apart?"""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from witness.ddp.schedule import LONG_RING, MOST_TURNS, Schedule
from witness.rules.ring import Audit, Pair, explain
from witness.rules.topology import Place, Topology, ring_length


def test_intervals_count_from_step_0_and_0_is_never() -> None:
    schedule = Schedule(audit_every=10, check_every=4, ckpt_every=6)
    assert [step for step in range(21) if schedule.is_audit(step)] == [0, 10, 20]
    assert [step for step in range(13) if schedule.is_check(step)] == [0, 4, 6, 8, 12]
    off = Schedule(audit_every=0, check_every=0)
    assert not any(off.is_audit(step) or off.is_check(step) for step in range(5))
    unforced = Schedule(check_every=4, ckpt_every=6, check_on_checkpoint=False)
    assert not unforced.is_check(6)


@pytest.mark.parametrize("name", ["audit_every", "check_every", "ckpt_every"])
def test_what_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Schedule(**{name: -1})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="peer_offset"):
        Schedule(peer_offset=0)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule(ckpt_every=150), "audit_every (100)"),
        (Schedule(ckpt_every=105), "check_every (10)"),
        (Schedule(audit_every=0), "Audits are off"),
        (Schedule(check_every=0), "Weight checks are off"),
        (Schedule(ckpt_every=100, check_on_checkpoint=False), "were not compared"),
        (Schedule(ckpt_every=200), ""),
    ],
)
def test_advice_says_what_is_given_away(schedule: Schedule, words: str) -> None:
    said = " ".join(schedule.advice())
    assert (words in said) if words else (said == "")


def topology(nodes: int, gpus: int) -> Topology:
    places = [Place(rank, f"node-{rank // gpus}") for rank in range(nodes * gpus)]
    return Topology.from_places(places, nodes * gpus)


layouts = st.tuples(st.integers(1, 24), st.integers(1, 8))


@settings(deadline=None)
@given(layouts, st.integers(0, 10_000), st.integers(1, 50))
def test_an_offset_never_puts_two_of_three_on_one_node(
    layout: tuple[int, int], step: int, every: int
) -> None:
    nodes, gpus = layout
    schedule = Schedule(audit_every=every, peer_offset=gpus)
    offset = schedule.offset(step, nodes * gpus)
    assert offset % gpus == 0
    if nodes >= 3:
        for each in {offset, *schedule.offsets(nodes * gpus)}:
            assert topology(nodes, gpus).problems(each) == ()
    else:
        assert offset == gpus


@settings(deadline=None)
@given(layouts)
def test_turns_begin_with_the_base_and_keep_rings_long(layout: tuple[int, int]) -> None:
    nodes, gpus = layout
    size = nodes * gpus
    schedule = Schedule(audit_every=1, peer_offset=gpus)
    turns = [schedule.offset(step, size) for step in range(64)]
    assert turns[0] == gpus == schedule.offsets(size)[0]
    assert set(turns) <= set(schedule.offsets(size))
    if nodes >= LONG_RING:
        assert len(schedule.offsets(size)) > 1
        assert all(ring_length(size, offset) >= LONG_RING for offset in turns)
        # No comparison is another one walked the other way round.
        assert all(2 * offset < size for offset in turns)
    else:
        assert set(turns) == {gpus}


def test_an_uneven_job_and_a_fixed_one_keep_their_offset() -> None:
    assert {Schedule(audit_every=1).offset(step, 41) for step in range(9)} == {8}
    assert {Schedule(audit_every=1, rotate=False).offset(step, 80) for step in range(9)} == {8}


def mismatches(nodes: int, faulty: set[int], offset: int, *, same: bool) -> tuple[Pair, ...]:
    """Give what persistent faults make differ, with equal or different wrong values."""
    pairs = []
    for by in range(nodes):
        target = (by + offset) % nodes
        wrong = (by in faulty) + (target in faulty)
        if wrong == 1 or (wrong == 2 and not same):
            pairs.append((target, by))
    return tuple(pairs)


def explained(nodes: int, faulty: set[int], offsets: tuple[int, ...], *, same: bool) -> bool:
    """Tell whether exactly the faulty ranks explain all audits, and nothing else does."""
    audits = [Audit(one, mismatches(nodes, faulty, one, same=same)) for one in offsets]
    found = explain(audits, nodes)
    named = {rank for each in found if len(each.sets) == 1 for rank in each.sets[0].faulty}
    return named == faulty and all(len(each.sets) == 1 for each in found)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("nodes", range(5, 13))
def test_two_faulty_gpus_come_apart_once_the_offset_has_turned(nodes: int, same: bool) -> None:
    schedule = Schedule(audit_every=1, peer_offset=1)
    others = schedule.offsets(nodes)[1:]
    one_audit = []
    for pair in combinations(range(nodes), 2):
        one_audit.append(explained(nodes, set(pair), (1,), same=same))
        for other in others:
            assert explained(nodes, set(pair), (1, other), same=same), (pair, other)
    # One audit alone does not do it: what is asserted above is not trivial.
    assert not all(one_audit)


def test_a_large_job_has_few_layouts_to_check() -> None:
    schedule = Schedule(audit_every=10)
    turns = [schedule.offset(10 * audit, 16_384) for audit in range(100)]
    assert len(set(turns)) == MOST_TURNS
    assert turns[:3] == [8, 16, 24]
    assert turns[MOST_TURNS] == 8
