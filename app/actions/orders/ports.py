"""What does the executor need to know of a kind of action?

One object a kind of action, without state: everything that is remembered stands in the proposal's
row. `send` is called once at most for a row, by the worker that claimed it. `look` only reads, and
is called again and again, by any worker, until the row has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol

from app.cluster.ports import ActionResult, NodeState
from app.context import Context
from app.store.proposals import Proposal

Status = Literal["accepted", "waiting", "verified", "refused", "failed", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class Link:
    """One machine took the place of another; `how` says what shows it."""

    old_instance_id: str
    new_instance_id: str
    how: Literal["logical_id", "event", "same_name", "only_new_one"]
    old_node: str | None = None
    new_node: str | None = None


@dataclass(frozen=True, slots=True)
class TestSeen:
    """What a test of the hardware said; a fact beside the alarms, never a verdict."""

    __test__ = False  # no test of ours

    kind: str
    result: Literal["running", "passed", "failed", "inconclusive", "stuck"]
    source: str
    words: str
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look showed. `status` None: nothing that settles or changes anything."""

    status: Status | None
    words: str
    state: NodeState | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    link: Link | None = None
    test: TestSeen | None = None


class Order(Protocol):
    """One kind of action."""

    stuck_after: timedelta
    """Not seen to have come about by then: said to be stuck, and looked for all the same."""

    look_every: timedelta
    """Between two looks at what was ordered."""

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Look once more at what the approval was bound to, then order it, once.

        Never raises an error of a cluster or a provider.
        """
        ...

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read what became of it, also of one whose outcome is unknown; changes nothing.

        Never raises an error of a cluster or a provider.
        """
        ...
