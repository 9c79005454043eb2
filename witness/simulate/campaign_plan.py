"""Which faults does a campaign inject, and which of them can the checks see at all?

Everything is drawn from one seed, so a trial can be made again by its number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from witness.inject import Fault

START, AUDIT, LAST = 20, 22, 24
"""First step, the audit that a fault from the step before meets first, and the last step."""

LAYERS = tuple(
    f"blocks.{block}.{part}" for block in (0, 1) for part in ("qkv", "out", "up", "down")
)
ELEMENTS = 512
"""Fewer than the smallest output and the smallest weight of these layers hold."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a few steps with its faults on `nodes` nodes of one rank each."""

    number: int
    family: str
    nodes: int
    faults: tuple[Fault, ...]
    schedule: dict[str, Any] = field(default_factory=dict)

    @property
    def faulty(self) -> frozenset[int]:
        """Give the ranks that compute wrong."""
        return frozenset(fault.rank for fault in self.faults)


class _Dice:
    """Draws of one trial."""

    def __init__(self, seed: int, number: int, nodes: int) -> None:
        self.chance = random.Random(seed * 1_000_003 + number)  # noqa: S311 a drill, not a secret
        self.nodes = nodes

    def rank(self) -> int:
        return self.chance.randrange(self.nodes)

    def two_ranks(self) -> tuple[int, int]:
        first, second = self.chance.sample(range(self.nodes), 2)
        return first, second

    def fault(self, rank: int | None = None) -> Fault:
        """Draw a wrong value of a layer's output: any finite mode."""
        chance = self.chance
        fault = Fault.on(self.rank() if rank is None else rank, chance.choice(LAYERS))
        element, other = chance.sample(range(ELEMENTS), 2)
        drawn: Callable[[], Fault] = chance.choice(
            [
                lambda: fault.multiply(chance.choice([-1.0, 0.5, 2.0, 1000.0]), element),
                lambda: fault.noise(chance.choice([0.01, 0.1]), chance.randrange(2**31)),
                lambda: fault.flip(chance.randrange(15), element),
                lambda: fault.column(chance.choice([0.9, 1.1]), element % 32),
                lambda: fault.swap(element, other),
                lambda: fault.pair(chance.choice([1, 16, 64]), element, other),
            ]
        )
        return drawn()

    def struck(self) -> int:
        """Draw after which update weights are hit; after an audit only the weight check sees it."""
        return self.chance.choice([AUDIT - 1, AUDIT])

    def since(self, fault: Fault) -> Fault:
        """Let it be there from before the audit on."""
        return fault.since(AUDIT - 1)


def _forward(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.since(dice.fault()),)


def _gradient(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.since(dice.fault()).in_gradient(),)


def _weight_gradient(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.since(dice.fault()).in_weight_gradient(),)


def _weights(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.fault().in_weights().once(dice.struck()),)


def _not_finite(dice: _Dice) -> tuple[Fault, ...]:
    fault, element = dice.fault(), dice.chance.randrange(ELEMENTS)
    return (dice.chance.choice([fault.nan, fault.inf])(element).once(AUDIT - 1),)


def _once(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.fault().once(AUDIT),)


def _intermittent(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.since(dice.fault()).sometimes(0.5, dice.chance.randrange(2**31)),)


def _between(dice: _Dice) -> tuple[Fault, ...]:
    return (dice.fault().once(AUDIT - 1),)


def _reduction(dice: _Dice) -> tuple[Fault, ...]:
    fault = dice.since(dice.fault())
    return (fault.in_contribution(),)


def _two(dice: _Dice) -> tuple[Fault, ...]:
    first, second = dice.two_ranks()
    return dice.since(dice.fault(first)), dice.since(dice.fault(second))


def _two_alike(dice: _Dice) -> tuple[Fault, ...]:
    first, second = dice.two_ranks()
    fault = dice.since(dice.fault(first))
    return fault, replace(fault, rank=second)


def _two_once(dice: _Dice) -> tuple[Fault, ...]:
    first, second = dice.two_ranks()
    fault = dice.fault(first).once(AUDIT)
    return fault, replace(fault, rank=second)


def _two_weights(dice: _Dice) -> tuple[Fault, ...]:
    first, second = dice.two_ranks()
    one, other = dice.fault(first).in_weights(), dice.fault(second).in_weights()
    step = dice.struck()
    return one.once(step), other.once(step)


def _two_weights_alike(dice: _Dice) -> tuple[Fault, ...]:
    first, second = dice.two_ranks()
    fault = dice.fault(first).in_weights().once(dice.struck())
    return fault, replace(fault, rank=second)


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of trial: how often it is drawn, and whether the three checks can see it."""

    draw: Callable[[_Dice], tuple[Fault, ...]]
    weight: int
    visible: bool = True
    schedule: dict[str, Any] = field(default_factory=dict)


LOSS_ONLY = {"deterministic_audits": False}

FAMILIES: dict[str, Family] = {
    "output of a layer, from a step on": Family(_forward, 16),
    "the same, audits by loss only": Family(_forward, 8, schedule=LOSS_ONLY),
    "gradient into a layer": Family(_gradient, 10),
    "gradient of a weight": Family(_weight_gradient, 10),
    "weights, after the update": Family(_weights, 10),
    "NaN or Inf, once": Family(_not_finite, 8),
    "once, on an audit step": Family(_once, 10),
    "intermittent, every other computation": Family(_intermittent, 8),
    "two ranks of a ring, different values": Family(_two, 8),
    "two ranks of a ring, equal values": Family(_two_alike, 8),
    "two ranks once, equal values": Family(_two_once, 5),
    "weights of two ranks, different values": Family(_two_weights, 5),
    "weights of two ranks, equal values": Family(_two_weights_alike, 5),
    "once, between audits": Family(_between, 3, visible=False),
    "gradient of a weight, audits by loss only": Family(
        _weight_gradient, 3, visible=False, schedule=LOSS_ONLY
    ),
    "inside the all-reduce": Family(_reduction, 3, visible=False),
}
"""Every family; those with `visible` False are outside what the three checks promise."""


def plan(count: int, nodes: int, seed: int, first: int = 0) -> list[Trial]:
    """Draw `count` trials for one number of nodes, numbered from `first`."""
    names = list(FAMILIES)
    weights = [one.weight for one in FAMILIES.values()]
    trials = []
    for number in range(first, first + count):
        dice = _Dice(seed, number, nodes)
        (name,) = dice.chance.choices(names, weights)
        family = FAMILIES[name]
        trials.append(Trial(number, name, nodes, family.draw(dice), dict(family.schedule)))
    return trials
