"""How are many proposals decided by one person at once, each of them for itself?

Every member goes through its own compare-and-set, in one transaction, in one order.  One that
moved meanwhile, or that a limit holds back, is told by itself; it undoes and hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta

from app.actions import fleets, rails, writing
from app.actions.counting import Asked
from app.actions.decide import Choice, Decider, Ground, decide_in, prepared
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import audit, batches, ids, rail_policy
from app.store.batches import Batch, Member, Whose
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules.rails import Cap, effect_of

LIMIT = 200
"""Members of one batch: they are decided in one transaction, and others wait for it."""
_READERS = 8
Allowed = Callable[[Whose], bool]


@dataclass(frozen=True, slots=True)
class Picked:
    """One proposal with the evidence version that was seen."""

    proposal_id: int
    evidence_version: int


@dataclass(frozen=True, slots=True)
class Use:
    """One limit of one cluster before the batch and after it."""

    cluster: str
    before: Cap
    after: Cap


@dataclass(frozen=True, slots=True)
class Trial:
    """What a batch would do, if it were decided now; nothing of it is kept."""

    members: tuple[Member, ...]
    uses: tuple[Use, ...]
    policy: str


class _Undone(Exception):
    """Carries the result of a trial out of the transaction that it undoes."""

    def __init__(self, trial: Trial) -> None:
        super().__init__("a trial")
        self.trial = trial


def decide_together(
    context: Context,
    picked: Sequence[Picked],
    decider: Decider,
    choice: Choice,
    allowed: Allowed = lambda one: True,
) -> Batch:
    """Decide every member; `choice` holds verdict, reason and limits, not the evidence versions."""
    _checked(picked)
    choices = _choices(context, picked, choice)
    now = context.now()
    named = [one.proposal_id for one in picked]

    def write(connection: Connection) -> Batch:
        batch_id = batches.new_id(connection, named, decider.name, now)
        ground = Ground(context.settings, now, batch_id)
        members = _each(connection, choices, decider, ground, allowed)
        kept = sum(one.kept for one in members)
        batch = Batch(
            batch_id, decider.name, now, choice.verdict, choice.reason or None, len(members), kept,
            members,
        )  # fmt: skip
        batches.add(connection, batch)
        because = f": {choice.reason}" if choice.reason else "."
        audit.append(
            connection,
            decider.name,
            f"batch.{choice.verdict}",
            f"{decider.name} decided {len(members)} proposals together, {kept} of them "
            f"{choice.verdict}{because}",
            at=now,
            details={
                "batch": ids.show(batch_id),
                "members": [
                    {"proposal": ids.show(one.proposal_id), "decided": one.kept, "why": one.code}
                    for one in members
                ],
            },
        )
        return batch

    return writing.write(context, write)


def attempt(context: Context, picked: Sequence[Picked], decider: Decider, choice: Choice) -> Trial:
    """Decide every member in a transaction that is undone: what would happen, one by one."""
    _checked(picked)
    _read_fleets(context, picked)
    choices = [replace(choice, evidence_version=one.evidence_version) for one in picked]
    ground = Ground(context.settings, context.now())

    def write(connection: Connection) -> Trial:
        found = batches.whose(connection, [one.proposal_id for one in picked])
        clusters = sorted({one.cluster for one in found.values()})
        wanted = [Asked(name, _widest(found.values(), name)) for name in clusters]
        before = [rails.budget_for(connection, one, ground.now) for one in wanted]
        pairs = list(zip(picked, choices, strict=True))
        members = _each(connection, pairs, decider, ground, lambda one: True)
        after = [rails.budget_for(connection, one, ground.now) for one in wanted]
        uses = [
            Use(one.cluster, cap, later)
            for one, was, then in zip(wanted, before, after, strict=True)
            for cap, later in zip(was.caps, then.caps, strict=False)
            if cap.code != "attempts"
        ]
        raise _Undone(Trial(members, tuple(uses), before[0].policy if before else "assumed"))

    try:
        return writing.write(context, write)
    except _Undone as undone:
        return undone.trial


def _read_fleets(context: Context, picked: Sequence[Picked]) -> None:
    with context.store.reading() as connection:
        found = batches.whose(connection, [one.proposal_id for one in picked])
        lasts = timedelta(hours=rail_policy.read(connection).fleet_hours)
    for cluster in sorted(
        {one.cluster for one in found.values() if effect_of(one.action) == "destroys"}
    ):
        fleets.make_sure(context, cluster, lasts)


def _widest(found: Iterable[Whose], cluster: str) -> str:
    """Pick one action of a cluster whose limits are listed: what destroys meets all of them."""
    actions = sorted(one.action for one in found if one.cluster == cluster)
    return next((name for name in actions if effect_of(name) == "destroys"), actions[0])


def _checked(picked: Sequence[Picked]) -> None:
    if not picked:
        raise Problem(422, "invalid", "Choose at least one proposal.", field="members")
    if len(picked) > LIMIT:
        words = f"At most {LIMIT} proposals are decided together; these are {len(picked)}."
        raise Problem(422, "too_many", words, field="members")
    if len({one.proposal_id for one in picked}) != len(picked):
        raise Problem(422, "invalid", "A proposal is named twice.", field="members")


def _choices(
    context: Context, picked: Sequence[Picked], choice: Choice
) -> list[tuple[Picked, Choice]]:
    """Read before the transaction what approvals of something that destroys rest on."""
    mine = [replace(choice, evidence_version=one.evidence_version) for one in picked]
    if choice.verdict == "approved":
        pairs = list(zip(picked, mine, strict=True))
        # The first reads the cluster as a whole where that is due; the others find it read.
        mine[0] = prepared(context, pairs[0][0].proposal_id, pairs[0][1])
        with ThreadPoolExecutor(_READERS) as pool:
            rest = pool.map(lambda one: prepared(context, one[0].proposal_id, one[1]), pairs[1:])
            mine[1:] = list(rest)
    return list(zip(picked, mine, strict=True))


def _each(
    connection: Connection,
    choices: Sequence[tuple[Picked, Choice]],
    decider: Decider,
    ground: Ground,
    allowed: Allowed,
) -> tuple[Member, ...]:
    found = batches.whose(connection, [one.proposal_id for one, _ in choices])
    done: dict[int, Member] = {}
    # By case: two batches that overlap must not wait for each other's cases.
    in_order = sorted(choices, key=lambda one: _case_of(found, one[0].proposal_id))
    for one, choice in in_order:
        whose = found.get(one.proposal_id)
        if whose is None:
            decided: Proposal | Problem = not_found("no proposal with this id")
        elif not allowed(whose):
            decided = forbidden(f"Not for {whose.namespace} of {whose.cluster}.")
        else:
            decided = decide_in(connection, one.proposal_id, decider, choice, ground)
        done[one.proposal_id] = _member(one.proposal_id, decided, choice)
    return tuple(done[one.proposal_id] for one, _ in choices)


def _case_of(found: dict[int, Whose], proposal_id: int) -> tuple[int, int]:
    return (found[proposal_id].case_id if proposal_id in found else 0), proposal_id


def _member(proposal_id: int, decided: Proposal | Problem, choice: Choice) -> Member:
    if isinstance(decided, Problem):
        return Member(proposal_id, False, decided.code, decided.message)
    return Member(proposal_id, True, None, f"{choice.verdict.capitalize()}.")
