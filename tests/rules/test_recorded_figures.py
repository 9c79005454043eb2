"""Do the published fault injections end in the published findings, windows and checkpoints?

Test bed: 4 nodes of 8 GPUs, audit and weight check every 10 steps, checkpoint every 20.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.documents import alarm, compute, layout, verdict, weights
from witness.rules.findings import findings
from witness.rules.resume import Checkpoint, resume_choices, tainted
from witness.rules.ring import Audit, explain
from witness.rules.suspect_window import reported_window

BOTH_PAIRS = [[13, 5], [21, 13]]


def kept(*steps: int) -> list[Checkpoint]:
    return [Checkpoint(step, committed=True) for step in steps]


@pytest.mark.parametrize(
    ("document", "passes", "start", "expected", "window", "resume"),
    [
        (
            compute([13], [[13, 5]], verdicts=[verdict("transient")], step=25),
            (20, 20),
            0,
            [("R3", 13)],
            (21, 25),
            20,
        ),
        (compute(pairs=BOTH_PAIRS, culprits=[13]), (20, 20), 0, [("R1", 13)], (21, 30), 20),
        (
            compute(pairs=[[13, 5]], verdicts=[verdict("transient")]),
            (20, 20),
            0,
            [("R3", 13)],
            (21, 30),
            20,
        ),
        (compute(pairs=[[13, 5], [5, 29]], culprits=[5]), (20, 20), 0, [("R1", 5)], (21, 30), 20),
        (
            compute(pairs=[*BOTH_PAIRS, [22, 14], [30, 22]], culprits=[13, 22]),
            (20, 20),
            0,
            [("R1", 13), ("R1", 22)],
            (21, 30),
            20,
        ),
        (weights(suspects=[0], step=35), (30, 30), 0, [("W1", 0)], (31, 35), 20),
        (
            compute(pairs=[[8, 0], [0, 24]], culprits=[0], step=40),
            (30, 30),
            0,
            [("R1", 0)],
            (31, 40),
            20,
        ),
        (weights(suspects=[0], step=40), (None, 30), 0, [("W1", 0)], (31, 40), 20),
        (weights(suspects=[7], step=40), (None, None), 40, [("W1", 7)], (40, 40), 20),
    ],
)
def test_an_injected_fault(
    document: Any, passes: Any, start: int, expected: Any, window: Any, resume: int
) -> None:
    read = alarm(document)
    found = findings(read, layout(4))
    assert [(one.rule, one.rank) for one in found] == expected
    assert all(one.cautions == () for one in found)
    assert reported_window(read.check, read.step, start, *passes) == window
    (choice,) = resume_choices(kept(0, 20), window, None, None, read.step)
    assert choice.step == resume


def test_the_plain_culprits_are_the_smallest_explanations() -> None:
    pairs = ((13, 5), (21, 13), (22, 14), (30, 22))
    groups = explain([Audit(8, pairs)], 32)
    assert [[one.faulty for one in group.sets] for group in groups] == [[(13,)], [(22,)]]
    assert all(group.sets[0].persistent for group in groups)


def test_the_checkpoint_that_was_saved_from_a_corrupt_replica() -> None:
    checkpoints = kept(0, 5, 10, 15, 20, 25, 30, 35)
    assert [one.step for one in tainted(checkpoints, (31, 40))] == [35]
    (choice,) = resume_choices(checkpoints, (31, 40), None, None, 40)
    assert (choice.step, choice.lost_steps) == (30, 10)


def test_two_faults_on_alternate_nodes_name_all_four() -> None:
    pairs = [[13, 5], [21, 13], [29, 21], [5, 29]]
    found = findings(alarm(compute(pairs=pairs, culprits=[5, 13, 21, 29])), layout(4))
    assert [one.rank for one in found] == [5, 13, 21, 29]
    assert all(one.has("multiple_faults") and one.blocks_replacement for one in found)
    (group,) = explain([Audit(8, tuple((a, b) for a, b in pairs))], 32)
    assert [one.faulty for one in group.sets] == [(5, 21), (13, 29)]
