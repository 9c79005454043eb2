"""What is told of an alarm to somebody who does not read its document?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from witness import wire
from witness.rules.alarm import AlarmError, read_alarm
from witness.wire import Envelope

NONFINITE, MISMATCH, DIVERGENT = (
    "sdc_nonfinite_grad",
    "sdc_replay_mismatch",
    "sdc_divergent_tensors",
)


@dataclass(frozen=True, slots=True)
class Notice:
    """One alarm.

    `named` are the suspect ranks; `here` tells whether one of them runs on this machine, None
    where that is not known. `key` is the same on all ranks.
    """

    envelope: Envelope
    check: str
    step: int
    named: tuple[int, ...]
    here: bool | None
    metrics: Mapping[str, int]
    key: str
    at: datetime


class Sink(Protocol):
    """Somebody who is told of alarms; may raise, and may take its time."""

    def tell(self, notice: Notice) -> None:
        """Pass an alarm on."""


def notice_of(
    envelope: Envelope, document: Mapping[str, Any], ranks_here: range | None = None
) -> Notice:
    """Sum up an alarm document."""
    try:
        named = read_alarm(document).named_ranks()
    except AlarmError:  # a newer shape: it is told of all the same
        named = ()
    here = None if ranks_here is None else any(rank in ranks_here for rank in named)
    key = wire.content_key(wire.alarm(envelope, document))
    check, step = str(document.get("check")), int(document.get("step") or 0)
    return Notice(envelope, check, step, named, here, metrics_of(document), key, datetime.now(UTC))


def metrics_of(document: Mapping[str, Any]) -> dict[str, int]:
    """Give the three metrics.

    Ranks with a non-finite gradient (1 for a reduced gradient, which names none), mismatched pairs
    of the ring, and tensors that differ between replicas (1 where the alarm does not count them).
    """
    check = document.get("check")
    nonfinite = len(document.get("nonfinite") or ()) + (check == "reduced gradient")
    tensors = document.get("divergent_tensors")
    counted = tensors if isinstance(tensors, int) else 1
    return {
        NONFINITE: nonfinite,
        MISMATCH: len(document.get("mismatched_pairs") or ()),
        DIVERGENT: counted if check == "weights" else 0,
    }
