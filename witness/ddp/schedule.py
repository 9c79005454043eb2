"""On which steps does which check run, and at which peer offset?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from witness.rules.topology import ring_length

LONG_RING = 5
"""From this many nodes on a ring has room for two faulty GPUs between healthy ones."""

MOST_TURNS = 16
"""Offsets that take turns; each one's layout is checked at the start, by every rank."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Intervals in steps; 0 switches a check, or the saving of checkpoints, off.

    `peer_offset` is the number of ranks a node (its GPUs): the target of a replay then sits one
    node further along than its replayer. `rotate` lets later audits use multiples of it where the
    nodes suffice, so that two faulty GPUs cannot hide behind each other for long.
    `max_grad_norm` None does not clip. `closer_every` and `closer_until` are what `closer` sets:
    up to that step audits come at least that often.
    """

    audit_every: int = 100
    check_every: int = 10
    ckpt_every: int = 0
    peer_offset: int = 8
    deterministic_audits: bool = True
    check_on_checkpoint: bool = True
    rotate: bool = True
    max_grad_norm: float | None = 1.0
    closer_every: int = 0
    closer_until: int = -1

    def __post_init__(self) -> None:
        """Refuse intervals that mean nothing."""
        for name in ("audit_every", "check_every", "ckpt_every"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 (never) or more, not {getattr(self, name)}")
        if self.peer_offset < 1:
            raise ValueError(f"peer_offset must be at least 1, not {self.peer_offset}")

    def is_audit(self, step: int) -> bool:
        """Tell whether the ring replay runs on this step."""
        return _due(step, self.audit_every) or self._is_closer(step)

    def closer(self, every: int, passes: int, start_step: int) -> Schedule:
        """Audit at least every so many steps until that many audits were made, then as before.

        A pure function of its arguments, so that ranks which are told the same audit on the same
        steps. One audit more than asked, since step 0 may not be trained. Nothing changes where
        audits are off, or come as often already.
        """
        if not self.audit_every or not 0 < every < self.audit_every or passes < 1:
            return self
        first = -(-start_step // every) * every
        return replace(self, closer_every=every, closer_until=first + every * passes)

    def _is_closer(self, step: int) -> bool:
        return step <= self.closer_until and _due(step, self.closer_every)

    def is_checkpoint(self, step: int) -> bool:
        """Tell whether a checkpoint is saved after this step."""
        return _due(step, self.ckpt_every)

    def is_check(self, step: int) -> bool:
        """Tell whether the weights are compared after this step."""
        forced = self.check_on_checkpoint and self.is_checkpoint(step)
        return forced or _due(step, self.check_every)

    def offset(self, step: int, world_size: int) -> int:
        """Give how far the target lies ahead of its replayer on this step.

        The first multiples of `peer_offset` take turns over the audits. One that would leave rings
        of fewer than five nodes has no turn: on short rings two faulty GPUs can make a healthy one
        look guilty.
        """
        if not self.rotate or not self.audit_every:
            return self.peer_offset
        nodes = ring_length(world_size, self.peer_offset)
        turns = [m for m in self._multiples(world_size) if nodes // gcd(m, nodes) >= LONG_RING]
        if not turns:
            return self.peer_offset
        every = self.closer_every if self._is_closer(step) else self.audit_every
        return self.peer_offset * turns[step // every % min(len(turns), MOST_TURNS)]

    def offsets(self, world_size: int) -> tuple[int, ...]:
        """List every multiple of `peer_offset` that compares with peers of its own, itself first.

        Replayer, target and third rank are on three nodes, and it is not a smaller multiple walked
        the other way round. More than one only from five nodes on.
        """
        multiples = self._multiples(world_size) or [1]
        return tuple(self.peer_offset * multiple for multiple in multiples)

    def _multiples(self, world_size: int) -> list[int]:
        if world_size % self.peer_offset:
            return []
        nodes = world_size // self.peer_offset
        return [m for m in range(1, (nodes + 1) // 2) if 2 * m % nodes]

    def advice(self) -> tuple[str, ...]:
        """Say in sentences what this schedule gives away."""
        said = []
        for name, every in (("audit_every", self.audit_every), ("check_every", self.check_every)):
            if self.ckpt_every and every and self.ckpt_every % every:
                said.append(
                    f"ckpt_every ({self.ckpt_every}) is not a multiple of {name} ({every}): a "
                    "checkpoint can lie inside a later alarm's window and be tainted."
                )
        if not self.audit_every:
            said.append("Audits are off: finite errors of forward and backward are not seen.")
        if not self.check_every and not (self.ckpt_every and self.check_on_checkpoint):
            said.append("Weight checks are off: a replica that drifts apart is not seen.")
        if self.ckpt_every and not self.check_on_checkpoint:
            said.append("A checkpoint may be saved from a replica whose weights were not compared.")
        return tuple(said)

    def as_document(self, start_step: int) -> dict[str, int]:
        """Give the intervals as an alarm carries them."""
        return {
            "audit_every": self.audit_every,
            "check_every": self.check_every,
            "ckpt_every": self.ckpt_every,
            "start_step": start_step,
        }


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
