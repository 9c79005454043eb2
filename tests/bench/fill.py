"""How is a database filled with months of a fleet, exactly as the intake would fill it?

The intake itself writes: the same rules, rows and rollups, in large transactions on a connection
that does not wait for the disk.  2,048 machines of 8 GPUs, 90 days up to now, jobs of 32 machines
that follow each other, and 512 bad GPUs, each of which goes wrong in one way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from app.store.database import connect, writing
from app.store.migrate import upgrade
from app.store.tables import alarms
from ingest.apply import apply_posts
from ingest.documents import Post
from ingest.parse import Arrival, read_post

NODES, PER_NODE, DAYS = 2_048, 8, 90
JOB_NODES = 32
RANKS = JOB_NODES * PER_NODE
GROUPS = NODES // JOB_NODES
JOB_DAYS = 6
BAD = 8  # bad GPUs in the machines of a group
TRANSACTION = 20_000
CLUSTER, NAMESPACE = "alpine", "research"


class Filler:
    """Fills one SQLite database in steps, so that pages can be measured in between."""

    def __init__(self, url: str, until: datetime) -> None:
        """Make the tables; `until` is the end of the 90 days."""
        upgrade(url)
        self.engine = connect(url)
        self._writing = writing(self.engine)
        self._until = until
        self.alarms = 0

    def close(self) -> None:
        """Write the journal into the file and let go of it."""
        with self.engine.connect() as connection:
            connection.exec_driver_sql("ANALYZE")
            connection.commit()
        self.engine.dispose()

    def fill(self, alarms: int, say: Callable[[int], None] = lambda done: None) -> None:
        """Add the jobs of 90 days, once, and alarms up to this number."""
        posts: list[Post] = []
        first = self.alarms == 0
        fresh = alarms - self.alarms
        for at, document in fleet_story(self._until, fresh, self.alarms, first):
            kind = document["kind"]
            posts.append(read_post(kind, document, Arrival(at, None, json.dumps(document))))
            if len(posts) == TRANSACTION:
                self._write(posts)
                say(len(posts))
                posts = []
        self._write(posts)
        self.alarms = alarms

    def _write(self, posts: list[Post]) -> None:
        if not posts:
            return
        with self._writing.connect() as connection:
            # To the driver itself: inside a transaction these may not be changed.
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.execute("PRAGMA synchronous=OFF")
            driver.execute("PRAGMA cache_size=-2097152")
            with connection.begin():
                apply_posts(connection, posts)

    def counted(self) -> int:
        """Count the alarms that are there."""
        with self.engine.connect() as connection:
            found: int = connection.execute(
                sa.select(sa.func.count()).select_from(alarms)
            ).scalar_one()
        return found


def fleet_story(
    until: datetime, count: int, before: int, maps_too: bool
) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Tell maps, passes and alarms in the order of their time; `before`: alarms told already."""
    dice = random.Random(before)
    start = until - timedelta(days=DAYS)
    rounds = DAYS // JOB_DAYS
    each, rest = divmod(count, GROUPS * rounds)
    told = 0
    for turn in range(rounds):
        begins = start + timedelta(days=JOB_DAYS * turn)
        told_now: list[tuple[datetime, dict[str, Any]]] = []
        for group in range(GROUPS):
            if maps_too:
                told_now += _start(group, turn, begins)
            mine = each + (1 if group * rounds + turn < rest else 0)
            told += mine
            told_now += [
                _alarm(group, turn, begins, before + number, dice) for number in range(mine)
            ]
        told_now.sort(key=lambda one: one[0])
        yield from told_now
    assert told == count, (told, count)


def _named(group: int, turn: int) -> dict[str, Any]:
    job = f"llm-{group % 4 * 35 + 7}b-g{group:02}-r{turn:02}"
    return {"cluster": CLUSTER, "namespace": NAMESPACE, "job": job, "attempt": 1}


def _start(group: int, turn: int, at: datetime) -> Iterator[tuple[datetime, dict[str, Any]]]:
    named, began = _named(group, turn), at + timedelta(seconds=group)
    rows = [_place(group, rank) for rank in range(RANKS)]
    map_ = {"kind": "rank_map", **named, "time": _text(began), "world_size": RANKS, "ranks": rows}
    yield began, {**map_, "gpus_per_node": PER_NODE}
    for day in range(JOB_DAYS):
        beat = at + timedelta(days=day, hours=20, seconds=group)
        for check in ("ring", "weights"):
            yield (
                beat,
                {
                    "kind": "passes",
                    **named,
                    "time": _text(beat),
                    "check": check,
                    "first_step": day * 5_000 + 1,
                    "last_step": (day + 1) * 5_000,
                    "count": 500,
                    "gpus": RANKS,
                    "mode": "deterministic",
                    "peer_offset": PER_NODE,
                    "step_time_s": 14.0,
                },
            )


def _place(group: int, rank: int) -> dict[str, Any]:
    node = group * JOB_NODES + rank // PER_NODE
    return {
        "rank": rank,
        "node": f"hyperpod-i-{node:017x}",
        "instance_id": f"i-{node:017x}",
        "gpu_uuid": f"GPU-{node:08x}-0000-4000-8000-{rank % PER_NODE:012x}",
        "local_rank": rank % PER_NODE,
    }


def _alarm(
    group: int, turn: int, begins: datetime, number: int, dice: random.Random
) -> tuple[datetime, dict[str, Any]]:
    at = begins + timedelta(seconds=600 + dice.randrange(JOB_DAYS * 86_400 - 1_200))
    # A step for each number: two alarms of one step would be a conflict or a repeat.
    step = 10 * number + 10
    # A GPU goes wrong in its own way, and some much more often than others.
    place = min(int(dice.expovariate(0.4)), BAD - 1)
    rank = PER_NODE + (group * 37 + place * 29) % (RANKS - 2 * PER_NODE)
    said: dict[str, Any] = {"step": step, "nonfinite": [], "mismatched_pairs": [], "culprits": []}
    if place == 4:
        pair, third = [rank, rank - PER_NODE], rank + 2 * PER_NODE
        kind = "persistent" if group % 2 else "transient"
        verdict = {"pair": pair, "third": third % RANKS, "suspect": rank, "kind": kind}
        said |= {"check": "compute", "mismatched_pairs": [pair], "verdicts": [verdict]}
    elif place == 5:
        said |= {"check": "compute", "nonfinite": [rank]}
    elif place == 6:
        said |= {"check": "weights", "suspects": [rank]}
    else:
        pairs = [[rank, rank - PER_NODE], [rank + PER_NODE, rank]]
        said |= {"check": "compute", "mismatched_pairs": pairs, "culprits": [rank]}
    said |= {"last_audit_pass": step - 10, "last_weight_check_pass": step - 10}
    said["suspect_window"] = [step - 9, step]
    return at, {
        "kind": "alarm",
        **_named(group, turn),
        "time": _text(at),
        "reporter_rank": 0,
        "code_digest": f"sha256:{group:032x}{turn:032x}",
        "alarm": said,
    }


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
