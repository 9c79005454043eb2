"""What does a person see of many proposals before deciding them together, and afterwards?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.actions.batch import Picked, Trial
from app.actions.batch_reading import Ends
from app.store import proposal_listing
from app.store.batches import Batch, Member
from app.store.connection import Connection
from app.store.proposal_listing import ListedProposal
from app.web import limits_view
from app.web.limits_view import Line
from app.web.next_step import status_word
from app.web.proposal_view import TITLES
from app.web.words import ident


@dataclass(frozen=True, slots=True)
class Row:
    """One member: what it would do, what ends with it, and what holds it back."""

    listed: ListedProposal
    title: str
    ends: Ends | None  # None: no pod ends with it
    held_back: str | None
    code: str | None
    word: str

    @property
    def value(self) -> str:
        """Write the member for a form, with the evidence version that is shown."""
        return f"{ident(self.listed.proposal.id)}.{self.listed.evidence_version}"


@dataclass(frozen=True, slots=True)
class Whole:
    """A batch before it is decided."""

    rows: tuple[Row, ...]
    lines: tuple[Line, ...]
    policy: str
    missing: int  # named, and not there

    @property
    def going(self) -> tuple[Row, ...]:
        """Give the members that would be approved."""
        return tuple(row for row in self.rows if row.held_back is None)

    @property
    def held_back(self) -> tuple[Row, ...]:
        """Give the members that would not be."""
        return tuple(row for row in self.rows if row.held_back is not None)

    @property
    def destroying(self) -> tuple[Row, ...]:
        """Give the members that would be approved and that destroy."""
        return tuple(row for row in self.going if row.listed.proposal.destroys)

    @property
    def word(self) -> str | None:
        """Give what has to be typed before something is destroyed; None: nothing has."""
        return typed_for(len(self.destroying))

    @property
    def pods(self) -> dict[str, int]:
        """Count the pods that end, by namespace."""
        found: dict[str, int] = {}
        for row in self.destroying:
            for namespace, number in (row.ends.pods if row.ends else {}).items():
                found[namespace] = found.get(namespace, 0) + number
        return dict(sorted(found.items()))

    @property
    def not_read(self) -> int:
        """Count the nodes of which nobody knows what runs there."""
        return sum(bool(row.ends and row.ends.error) for row in self.destroying)


def typed_for(number: int) -> str | None:
    """Word what is typed before so many nodes are destroyed; None: none is."""
    if not number:
        return None
    return f"destroy {number} node{'s' if number != 1 else ''}"


def listed(connection: Connection, picked: Sequence[Picked]) -> dict[int, ListedProposal]:
    """Read the members that are there."""
    found = [proposal_listing.one(connection, one.proposal_id) for one in picked]
    return {one.proposal.id: one for one in found if one is not None}


def whole(found: Mapping[int, ListedProposal], trial: Trial, ends: Mapping[int, Ends]) -> Whole:
    """Put together what would happen."""
    rows = tuple(
        _row(found[one.proposal_id], one, ends.get(one.proposal_id))
        for one in trial.members
        if one.proposal_id in found
    )
    lines: dict[str, Line] = {}
    for use in trial.uses:
        line = limits_view.line(use.before, use.after, use.cluster)
        lines.setdefault(line.name, line)
    missing = len(trial.members) - len(rows)
    return Whole(rows, tuple(lines.values()), trial.policy, missing)


def _row(one: ListedProposal, member: Member, ends: Ends | None) -> Row:
    action = one.proposal.action
    words = None if member.kept else member.words.replace(" Nothing was approved.", "")
    return Row(one, TITLES.get(action, action), ends, words, member.code, status_word(one.proposal))


def after(found: Mapping[int, ListedProposal], batch: Batch) -> tuple[Row, ...]:
    """List the members of a decided batch, those that were not decided first."""
    rows = [
        _row(found[one.proposal_id], one, None) for one in batch.members if one.proposal_id in found
    ]
    return tuple(sorted(rows, key=lambda row: row.held_back is None))
