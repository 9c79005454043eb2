"""How does a random walk through alarms, decisions, crashes, foreign changes and clocks go?"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa

from app.actions import brakes, fleets, looking, verify, vetoes
from app.actions.batch import Picked, decide_together
from app.actions.decide import Choice, Decider, decide
from app.actions.execute import run_one
from app.actions.executor import Executor
from app.actions.undo import CAN_BE_ASKED_AGAIN, ask_again, undo
from app.context import Context
from app.errors import Problem
from app.store import evidence, proposals, rail_policy, run_settings
from app.store.connection import Connection
from app.store.proposals import Proposal
from app.store.tables import proposals as table
from ingest.apply import apply_posts
from ingest.parse import Arrival, read_post
from tests.actions.fleet import envelope
from tests.approvals.checks import Checks
from tests.approvals.house import CLUSTER, START, House
from tests.approvals.world import Crash, Machines, MemoryStore, World
from witness.rules import rail_policy as limits

NODES = 12
STEPS = 16
CLOCK = (1, 1, 20, 20, 50, 300, 300, 900, 1_200, 4_000, 90_000, 700_000)  # seconds
ALL_OF = sa.select(*proposals.COLUMNS)
PEOPLE = (
    Decider("alice", "operator"), Decider("ann", "approver"), Decider("bob", "approver"),
    Decider("root", "admin"), Decider("eve", "approver"),
)  # fmt: skip


def name_of(number: int) -> str:
    """Name a node."""
    return f"hyperpod-i-{0xC0FFEE00000000000 + number:017x}"


def posted(document: dict[str, Any], world: World) -> Any:
    """Read a document as it comes in now."""
    return read_post(document["kind"], document, Arrival(world.time, None, json.dumps(document)))


def first_map() -> dict[str, Any]:
    """Place one rank on each node."""
    ranks = [
        {
            "rank": number,
            "node": name_of(number),
            "instance_id": name_of(number).removeprefix("hyperpod-"),
            "gpu_uuid": f"GPU-{number:08x}-1111-4222-8333-000000000000",
        }
        for number in range(NODES)
    ]
    return envelope(
        "rank_map",
        "llama",
        START.isoformat(),
        world_size=NODES,
        ranks=ranks,
        code_digest="sha256:a",
    )


def first_alarms() -> list[dict[str, Any]]:
    """Suspect four nodes, each by an alarm of its own."""
    return [weights_alarm([number], 1 + number, START) for number in range(4)]


def weights_alarm(named: list[int], count: int, at: datetime) -> dict[str, Any]:
    """Name some nodes; each alarm of a walk is about a later step."""
    step = 10 * count
    alarm = {
        "step": step, "check": "weights", "suspects": named, "suspect_window": [step - 9, step],
        "last_audit_pass": step - 10, "last_weight_check_pass": step - 10,
    }  # fmt: skip
    return envelope("alarm", "llama", at.isoformat(), reporter_rank=0, alarm=alarm)


class Walk:
    """One walk: what may happen at each step, on one database and one world."""

    def __init__(self, context: Context, world: World, seed: int) -> None:
        self.context = context
        self.world = world
        self.random = random.Random(seed)
        self.connection: Connection = cast(MemoryStore, context.store).connection
        self.checks = Checks(context, world, self.connection)
        world.on_call = self.checks.call
        self.executor = Executor(context)
        self.alarms = 4
        self.one_build = self.random.random() < 0.1  # then the rules say: software first
        self.done: dict[str, int] = {}

    def go(self) -> None:
        """Take the steps, and hold after each what has always to be true."""
        self._limits()
        fleets.read(self.context, CLUSTER)
        for _ in range(STEPS):
            step = self.random.choices(STEPS_OF, WEIGHTS)[0]
            name = step.__name__.strip("_")
            self.done[name] = self.done.get(name, 0) + 1
            step(self)
            self.checks.after(name)

    # -- what may happen -------------------------------------------------------------------------

    def _alarm(self) -> None:
        number = self.random.choice((1, 1, 1, 2, 2, 3, 3, 3, 7))
        named = sorted(self.random.sample(range(NODES), number))
        self.alarms += 1
        document = weights_alarm(named, self.alarms, self.world.time)
        if self.one_build:
            document["code_digest"] = "sha256:a"
        post = posted(document, self.world)
        self.context.store.write(lambda c: apply_posts(c, [post]))

    def _clock(self) -> None:
        self.world.time += timedelta(seconds=self.random.choice(CLOCK))

    def _approve(self) -> None:
        one = self._any("proposed")
        if one is None:
            return
        seen = evidence.version(self.connection, one.case_id) - self.random.choice(
            (0, 0, 0, 0, 0, 1)
        )
        policy = rail_policy.read(self.connection).name
        choice = Choice(
            "approved", seen, policy=self.random.choice((policy, policy, policy, None, "0"))
        )
        self._try(lambda: decide(self.context, one.id, self.random.choice(PEOPLE), choice))

    def _reject(self) -> None:
        one = self._any("proposed")
        if one is not None:
            seen = max(0, one.evidence_version - self.random.choice((0, 1)))
            late = one.is_expired(self.world.time)
            done = self._try(
                lambda: decide(self.context, one.id, PEOPLE[0], Choice("rejected", seen))
            )
            assert done or late, "a rejection was held back"

    def _batch(self) -> None:
        rows = self._all("proposed")
        if not rows:
            return
        chosen = self.random.sample(rows, min(len(rows), 5))
        picked = [Picked(p.id, evidence.version(self.connection, p.case_id)) for p in chosen]
        done = decide_together(
            self.context, picked, self.random.choice(PEOPLE), Choice("approved", 0)
        )
        assert done.asked == len(done.members) == len(picked)

    def _work(self) -> None:
        for one in self._all("approved")[: self.random.choice((1, 2, 9))]:
            self.world.lose_answer = self.random.random() < 0.1
            self.world.fuse = self.random.choice((*[None] * 20, *range(20)))
            try:
                run_one(self.context, one.id, self.executor.name)
            except Crash:
                self.executor = Executor(self.context)
                self.executor.settle_orphans(at_start=True)
            finally:
                self.world.fuse, self.world.lose_answer = None, False

    def _foreign(self) -> None:
        boxes = list(self.world.boxes.values())
        box = self.random.choice(boxes)
        kind = self.random.choice(("cordon", "uncordon", "replaced", "gone", "finish", "finish"))
        if kind == "cordon" and box.ours is None:
            box.other = True
        elif kind == "uncordon":
            box.other, box.ours = False, None
        elif kind == "replaced":
            del self.world.boxes[box.name]
            self.world.add(box.name)
        elif kind == "gone" and len(boxes) > NODES // 2:
            del self.world.boxes[box.name]
        for ordered in [one for one in boxes if one.ordered and kind == "finish"]:
            cast(Machines, self.context.providers[CLUSTER]).finish(ordered)

    def _watch(self) -> None:
        verify.watch_held_nodes(self.context)
        looking.look_due(self.context)
        if self.random.random() < 0.5:
            fleets.read(self.context, CLUSTER)

    def _read_again(self) -> None:
        one = self._any("unknown")
        if one is not None:
            verify.read_again(self.context, one.id, "alice")

    def _tidy(self) -> None:
        self.executor.tidy()

    def _brake(self) -> None:
        pulled = not run_settings.brake(self.connection).pulled
        brakes.set_by_hand(self.context, pulled, "a walk", "root")

    def _undo(self) -> None:
        standing = self._all("verified", "accepted", "unknown")
        found = [one for one in standing if one.action == "cordon"]
        if found:
            self.checks.undone(self.random.choice(found), self._lift)

    def _lift(self, cordon: Proposal) -> Problem | None:
        try:
            undo(self.context, cordon.id, PEOPLE[0], "a walk")
        except Problem as problem:
            return problem
        return None

    def _ask_again(self) -> None:
        one = self._any(*CAN_BE_ASKED_AGAIN)
        if one is not None:
            self._try(lambda: ask_again(self.context, one.id, PEOPLE[0]))

    def _replace(self) -> None:
        known = self._all("verified", "accepted", "proposed", "unknown")
        found = [one for one in known if one.action == "cordon"]
        if found:
            House.add(cast(House, self), self.random.choice(found), "replace")

    def _veto(self) -> None:
        node = name_of(self.random.randrange(NODES))
        until = self.world.time + timedelta(hours=self.random.choice((1, 30)))
        self._try(lambda: vetoes.forbid(self.context, CLUSTER, node, PEOPLE[0], "x", until=until))

    def _limits(self) -> None:
        pick = self.random.choice
        hour = pick((2, 3, 5))
        values = {
            "max_nodes": pick((1, 2, 3, 5)), "max_per_hour": hour, "max_per_day": hour + 3,
            "max_share": 0.5, "max_destroyed_share": pick((0.1, 0.2)), "max_per_group": 4,
            "cooldown_minutes": pick((0, 10)), "execute_minutes": pick((1, 15)),
            "brake_half_job_nodes": 7, "brake_storm_nodes": pick((7, 20)), "brake_digest_cases": 11,
        }  # fmt: skip
        before = rail_policy.read(self.connection)
        after = limits.checked({**before.values, **values}, before.version + 1)
        now = self.world.time
        self.context.store.write(lambda c: rail_policy.keep(c, after, by="root", at=now))

    # -- what it needs ---------------------------------------------------------------------------

    @property
    def time(self) -> Any:
        """Read the clock, as the house does."""
        return self.world.time

    def _all(self, *statuses: str) -> list[Proposal]:
        query = ALL_OF.where(table.c.status.in_(statuses)).order_by(table.c.id)
        return [proposals.from_row(row) for row in self.connection.execute(query)]

    def _any(self, *statuses: str) -> Proposal | None:
        found = self._all(*statuses)
        return self.random.choice(found) if found else None

    def _try(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except Problem:
            return False
        return True


STEPS_OF: tuple[Callable[[Walk], None], ...] = (
    Walk._alarm, Walk._clock, Walk._approve, Walk._batch, Walk._work, Walk._foreign, Walk._watch,
    Walk._undo, Walk._tidy, Walk._brake, Walk._replace, Walk._reject, Walk._ask_again,
    Walk._read_again, Walk._veto, Walk._limits,
)  # fmt: skip
WEIGHTS = (2, 4, 6, 4, 9, 3, 3, 3, 1, 1, 4, 1, 2, 1, 1, 1)
