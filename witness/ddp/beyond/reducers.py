"""Who added up wrong, by the fingerprints of three computations and of their inputs?"""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch import Tensor

from witness.rules.majority import suspects_by_majority

Row = tuple[int, ...]


class _Table:
    """The rows that `reduction` gathered: `given`, 3 x `inputs`, 3 sums, `received`, by rank."""

    def __init__(self, table: Tensor) -> None:
        self.ranks = table.shape[0]
        self.rows = table.tolist()

    def given(self, sender: int, shard: int) -> Row:
        return tuple(self.rows[sender][shard])

    def taken(self, holder: int, role: int, sender: int) -> Row:
        return tuple(self.rows[holder][(1 + role) * self.ranks + sender])

    def computed(self, holder: int, role: int) -> Row:
        return tuple(self.rows[holder][4 * self.ranks + role])

    def received(self, holder: int, shard: int) -> Row:
        return tuple(self.rows[holder][4 * self.ranks + 3 + shard])


def judge(table: Tensor, offset: int) -> list[dict[str, Any]]:
    """Name what went wrong in one bucket, by positions in the group; empty where all agree.

    `table` is int64 [ranks, 5 ranks + 3, words]. Kinds, each with `owner`, `witness`, `third`:
    `sum`: inputs agree and one of the three sums differs: `suspect` made it; None if all differ.
    `input`: `sender`'s part is not the same with everybody. Where the three that received it agree,
    `suspect` is the sender. Else it is None: a wrong copy at one `receiver` may have come about
    there or on the way.
    `copy`: a rank received another sum than the owner made. `suspect` is that rank, or the owner
    where more than half received the same other one.
    """
    read = _Table(table)
    found: list[dict[str, Any]] = []
    for owner in range(read.ranks):
        holders = [(owner + role * offset) % read.ranks for role in range(3)]
        roles: dict[str, Any] = dict(zip(("owner", "witness", "third"), holders, strict=True))
        inputs = _inputs(read, holders)
        sums = inputs or _sums(read, holders)
        found += [{**roles, **each} for each in sums + _copies(read, owner)]
    return found


def _inputs(read: _Table, holders: list[int]) -> list[dict[str, Any]]:
    found = []
    for sender in range(read.ranks):
        given = read.given(sender, holders[0])
        taken = [read.taken(holder, role, sender) for role, holder in enumerate(holders)]
        if all(copy == given for copy in taken):
            continue
        entry: dict[str, Any] = {"kind": "input", "sender": sender, "suspect": None}
        if len(set(taken)) == 1:
            entry["suspect"] = sender
        else:
            odd = suspects_by_majority(dict(enumerate([*taken, given]))).suspects
            if odd is not None and len(odd) == 1:
                entry["receiver"] = holders[odd[0]]
        found.append(entry)
    return found


def _sums(read: _Table, holders: list[int]) -> list[dict[str, Any]]:
    made = {holder: read.computed(holder, role) for role, holder in enumerate(holders)}
    if len(set(made.values())) == 1:
        return []
    odd = suspects_by_majority(made).suspects
    return [{"kind": "sum", "suspect": one} for one in odd or [None]]


def _copies(read: _Table, owner: int) -> list[dict[str, Any]]:
    made = read.computed(owner, 0)
    copies = {holder: read.received(holder, owner) for holder in range(read.ranks)}
    others = [holder for holder, copy in copies.items() if copy != made]
    if not others:
        return []
    if 2 * len(others) < read.ranks:
        return [{"kind": "copy", "suspect": one} for one in others]
    majority = Counter(copies.values()).most_common(1)[0][1]
    return [{"kind": "copy", "suspect": owner if 2 * majority > read.ranks else None}]
