"""Which faults must which check catch, on which step, naming whom, and which one is missed?

The rows are those of the published fault table for 4 nodes of 8 GPUs and a fault in the MLP of the
middle block; every rank is counted from its node and its place there, so that other layouts give
the same rows with their own peers. Drills begin at step 20, which is an audit step, so that a
window cannot reach before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from witness.inject import Fault
from witness.rules.topology import NODES_NEEDED
from witness.simulate.model import Shape

START, LAST = 20, 50

Saved = tuple[int, int | None, int | None]
"""A checkpoint: its step, and its tags, the last audit and the last weight check that passed."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes of equally many GPUs; ranks are numbered node by node."""

    nodes: int
    gpus: int

    def __post_init__(self) -> None:
        """Refuse a fleet of nothing."""
        if self.nodes < 1 or self.gpus < 1:
            raise ValueError(f"{self.nodes} nodes of {self.gpus} GPUs are no fleet")

    @property
    def world_size(self) -> int:
        """Count the ranks."""
        return self.nodes * self.gpus

    def rank(self, node: int, place: int) -> int:
        """Give the rank at a place of a node, both wrapping around."""
        return node % self.nodes * self.gpus + place % self.gpus

    def pair(self, target: int) -> tuple[int, int]:
        """Give the comparison of a target with its replayer, one node before it."""
        return target, (target - self.gpus) % self.world_size

    def pairs(self, faulty: int) -> tuple[tuple[int, int], ...]:
        """Give both comparisons that a rank is in: as target, then as replayer."""
        return self.pair(faulty), self.pair(self.beyond(faulty))

    def beyond(self, rank: int) -> int:
        """Give the rank one node further on."""
        return (rank + self.gpus) % self.world_size


@dataclass(frozen=True, slots=True)
class Alarm:
    """What an alarm says, as far as a scenario fixes it.

    `verdicts` are (pair, third, suspect, kind); `suspects` None means that nobody is named.
    """

    step: int
    check: str
    window: tuple[int, int]
    nonfinite: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    culprits: tuple[int, ...] = ()
    verdicts: tuple[tuple[tuple[int, int], int, int | None, str], ...] = ()
    suspects: tuple[int, ...] | None = None

    @classmethod
    def read(cls, document: dict[str, Any]) -> Alarm:
        """Take the same from an alarm document."""
        suspects = document.get("suspects")
        first, last = document["suspect_window"]
        return cls(
            step=document["step"],
            check=document["check"],
            window=(first, last),
            nonfinite=tuple(document.get("nonfinite", ())),
            pairs=tuple(sorted((t, r) for t, r in document.get("mismatched_pairs", ()))),
            culprits=tuple(document.get("culprits", ())),
            verdicts=tuple(
                ((one["pair"][0], one["pair"][1]), one["third"], one["suspect"], one["kind"])
                for one in document.get("verdicts", ())
            ),
            suspects=None if suspects is None else tuple(suspects),
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """One drill: the faults, what differs from the usual schedule, and what must come of it.

    `expected` None means that training goes on to step `LAST`. `published` is False for rows of
    our own. `restored` faults strike before the first step, as a bad restore does.
    """

    name: str
    faults: tuple[Fault, ...]
    expected: Alarm | None
    saved: tuple[Saved, ...] = ((20, 20, 20),)
    schedule: dict[str, Any] = field(default_factory=dict)
    published: bool = True
    restored: bool = False


def scenarios(layout: Layout, shape: Shape | None = None) -> list[Scenario]:
    """List every row for a layout; raises ValueError where audits have too few nodes.

    The row with two faulty ranks needs them in two rings, so a layout of one GPU a node has none.
    """
    if layout.nodes < NODES_NEEDED:
        raise ValueError(f"audits need {NODES_NEEDED} nodes, and there are {layout.nodes}")
    rows = _Rows(layout, shape or Shape())
    return [
        *rows.forward(),
        *rows.backward(),
        *rows.two_ranks(),
        *rows.weights(),
        *rows.our_own(),
    ]


class _Rows:
    """The rows of one layout. Rank 13 of the published table is place 5 of node 1, and so on."""

    def __init__(self, layout: Layout, shape: Shape) -> None:
        self.layout, self.layer, self.attention = layout, shape.middle, shape.attention
        self.thirteen, self.five = layout.rank(1, 5), layout.rank(0, 5)
        self.zero, self.seven = layout.rank(0, 0), layout.rank(0, 7)

    def on(self, rank: int) -> Fault:
        """Begin a fault of the middle layer."""
        return Fault.on(rank, self.layer)

    def ring(self, *faulty: int) -> Alarm:
        """Expect the audit of step 30 to name these ranks, each by both of its comparisons."""
        pairs = sorted(pair for rank in faulty for pair in self.layout.pairs(rank))
        return Alarm(30, "compute", (21, 30), pairs=tuple(pairs), culprits=tuple(sorted(faulty)))

    def transient(self, step: int, nonfinite: tuple[int, ...] = ()) -> Alarm:
        """Expect one ambiguous pair, settled by the third rank and the target itself."""
        target = self.thirteen
        pair, third = self.layout.pair(target), self.layout.beyond(target)
        verdict = (pair, third, target, "transient")
        return Alarm(step, "compute", (21, step), nonfinite, (pair,), (), (verdict,))

    def weight_check(self, rank: int, step: int, window: tuple[int, int]) -> Alarm:
        """Expect the comparison of weights to name one rank."""
        return Alarm(step, "weights", window, suspects=(rank,))

    def forward(self) -> list[Scenario]:
        """Faults of the layer's output."""
        fault, named = self.on(self.thirteen), self.ring(self.thirteen)
        nan, noise = fault.nan(ELEMENT).once(25), fault.noise(0.1).since(23)
        flip, column = fault.flip(3, ELEMENT).since(23), fault.column(1.1).since(23)
        large, larger = fault.multiply(1e3, ELEMENT), fault.multiply(1e4, ELEMENT).since(23)
        peer = self.on(self.five).multiply(1e3, ELEMENT).since(23)
        only_loss = {"deterministic_audits": False}
        return [
            Scenario("NaN, once at 25", (nan,), self.transient(25, (self.thirteen,))),
            Scenario("×1000, from 23", (large.since(23),), named),
            Scenario("×1000, once at audit step 30", (large.once(30),), self.transient(30)),
            Scenario("×1000 on its replayer, from 23", (peer,), self.ring(self.five)),
            Scenario("×10,000, from 23", (larger,), named),
            Scenario("10 % noise, from 23", (noise,), named),
            Scenario("bit 3 of one bfloat16, from 23", (flip,), named),
            Scenario("one column ×1.1, from 23", (column,), named),
            Scenario("bit 3, default-kernel audits", (flip,), named, schedule=only_loss),
            Scenario("column ×1.1, default-kernel audits", (column,), named, schedule=only_loss),
        ]

    def backward(self) -> list[Scenario]:
        """Faults that the loss does not show."""
        fault = self.on(self.thirteen).multiply(1e3, ELEMENT).since(23)
        weight, named = fault.in_weight_gradient(), self.ring(self.thirteen)
        missed = ((20, 20, 20), (40, 40, 40))
        return [
            Scenario("gradient into the layer ×1000, from 23", (fault.in_gradient(),), named),
            Scenario("weight gradient ×1000, from 23", (weight,), named),
            Scenario(
                "weight gradient ×1000, default-kernel audits: missed",
                (weight,),
                None,
                missed,
                {"deterministic_audits": False},
            ),
        ]

    def two_ranks(self) -> list[Scenario]:
        """Two faulty ranks at once, at two places of their nodes."""
        other = self.layout.rank(2, 6)
        if other % self.layout.gpus == self.thirteen % self.layout.gpus:
            return []
        both = [self.on(rank).multiply(1e3, ELEMENT).since(23) for rank in (self.thirteen, other)]
        named = self.ring(self.thirteen, other)
        return [Scenario("×1000 on two ranks, from 23", tuple(both), named)]

    def weights(self) -> list[Scenario]:
        """Faults of what is stored, after the update of step 31."""
        fault = self.on(self.zero).in_weights()
        flip = fault.flip(22).once(31)
        named = self.weight_check(self.zero, 40, (31, 40))
        often = {"ckpt_every": 5}
        saved = ((20, 20, 20), (25, 20, 25), (30, 30, 30))
        unchecked = ((20, 20, 20), (25, 20, 20), (30, 30, 30), (35, 30, 30))
        by_ring = Alarm(
            40,
            "compute",
            (31, 40),
            pairs=tuple(sorted(self.layout.pairs(self.zero))),
            culprits=(self.zero,),
        )
        blind, first = {"audit_every": 0}, ((20, None, 20),)
        restore = Fault.on(self.seven, self.attention).in_weights().flip(22).once(START - 1)
        return [
            Scenario(
                "bit 22 of a weight, checkpoints every 5",
                (flip,),
                self.weight_check(self.zero, 35, (31, 35)),
                saved,
                often,
            ),
            Scenario(
                "bit 22 of a weight, checkpoints every 5 unchecked",
                (flip,),
                by_ring,
                unchecked,
                often | {"check_on_checkpoint": False},
            ),
            Scenario(
                "two weights swapped, no audits", (fault.swap().once(31),), named, first, blind
            ),
            Scenario(
                "±4096 on two weights, no audits", (fault.pair().once(31),), named, first, blind
            ),
            Scenario(
                "bit 22 of an attention weight, restored",
                (restore,),
                self.weight_check(self.seven, START, (START, START)),
                (),
                restored=True,
            ),
        ]

    def our_own(self) -> list[Scenario]:
        """No fault, and what arises inside the all-reduce."""
        clean = ((20, 20, 20), (40, 40, 40))
        reducer = Fault.on(self.thirteen).in_reduced()
        infinite = Alarm(25, "reduced gradient", (25, 25))
        return [
            Scenario("no fault", (), None, clean, published=False),
            Scenario(
                "Inf in the all-reduce, once at 25",
                (reducer.inf().once(25),),
                infinite,
                published=False,
            ),
            Scenario(
                "×1000 in the all-reduce, from 23: not seen by these checks",
                (reducer.multiply().since(23),),
                None,
                clean,
                published=False,
            ),
        ]


ELEMENT = 100
"""An element of the layer's output whose token counts in the loss."""
