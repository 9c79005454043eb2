"""What is different from what the decider saw: evidence, decision table, limits?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.errors import Problem
from app.store import evidence, ids, rail_policy
from app.store.connection import Connection
from app.store.evidence import Piece
from app.store.proposals import Proposal
from witness.rules.decision_table import TABLE_VERSION

SHOWN = 10  # new findings that are listed


@dataclass(frozen=True, slots=True)
class Look:
    """What the decider had before the eyes; None: not said, so it is not compared."""

    evidence_version: int
    table_version: str | None = None
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that changed, in a sentence."""

    code: str
    words: str
    found: Sequence[Piece] = ()


def since(connection: Connection, proposal: Proposal, look: Look) -> tuple[Difference, ...]:
    """List what changed since a look; the case is locked, so that nothing new comes in between."""
    found = []
    version = evidence.version(connection, proposal.case_id, lock=True)
    if version != look.evidence_version:
        found.append(_evidence(connection, proposal, look.evidence_version, version))
    newest = str(TABLE_VERSION)
    if newest not in (proposal.table_version, look.table_version):
        before = look.table_version or proposal.table_version
        words = f"The decision table changed: version {before} then, version {newest} now."
        found.append(Difference("table_changed", words))
    if look.policy is not None:
        policy = rail_policy.read(connection)
        if policy.name != look.policy:
            words = f"The limits changed: version {look.policy} then, version {policy.name} now."
            found.append(Difference("policy_changed", words))
    return tuple(found)


def _evidence(connection: Connection, proposal: Proposal, seen: int, version: int) -> Difference:
    new = evidence.newest(connection, proposal.case_id, min(max(version - seen, 1), SHOWN))
    words = (
        f"The evidence changed since this was shown: version {seen} then, version {version} now. "
        f"New: {'; '.join(one.words for one in new)}."
    )
    return Difference("evidence_changed", words, new)


def problem(found: Sequence[Difference], look: Look, version: int) -> Problem:
    """Say what changed; the first thing gives the code."""
    pieces = [piece for one in found for piece in one.found]
    return Problem(
        409,
        found[0].code,
        f"{' '.join(one.words for one in found)} Nothing was decided; look at it again.",
        more={
            "seen": look.evidence_version,
            "evidence_version": version,
            "changes": [{"code": one.code, "what": one.words} for one in found],
            "changed": [
                {
                    "alarm": None if one.alarm_id is None else ids.show(one.alarm_id),
                    "kind": one.kind,
                    "what": one.words,
                }
                for one in pieces
            ],
        },
    )
