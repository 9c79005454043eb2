"""How do a person and a program ask for the telemetry of a GPU over a time of their choice?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.actions.telemetry.planning import GRID
from app.context import Context
from app.errors import Problem, not_found
from app.filters import bad, instant
from app.store import (
    audit,
    ids,
    node_evidence,
    telemetry_asked,
    telemetry_queue,
    telemetry_unread,
)
from app.store.connection import Connection
from app.store.device_reading import Gpu, Node, gpu_by_id, gpus_in, machines_of
from app.store.telemetry_queue import A_PERSON, ENDED_EMPTY, Want
from app.strict_json import rfc3339

USUAL = timedelta(hours=2)
LONGEST = timedelta(hours=24)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
BESIDE = 15
"""Other GPUs of the node that are asked for with one: with it one question to the source."""
MOST_WAITING = 512
"""Windows that people may have waiting, so that alarms are not kept waiting behind them."""
WINDOWS = 400


@dataclass(frozen=True, slots=True)
class Range:
    """A time somebody asked about, as asked; `on_grid` is what a source is asked for."""

    start: datetime
    end: datetime

    @property
    def on_grid(self) -> tuple[datetime, datetime]:
        """Widen it to the grid on which windows begin and end."""
        grid = GRID.total_seconds()
        first, last = self.start.timestamp() // grid, -(-self.end.timestamp() // grid)
        return datetime.fromtimestamp(first * grid, UTC), datetime.fromtimestamp(last * grid, UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was queued: `fresh` counts windows that nobody asked for here before."""

    gpus: int
    fresh: int
    node: Node


def read_range(parameters: Iterable[tuple[str, str]], now: datetime) -> Range:
    """Read `from` and `to`; the last two hours where both are missing, 24 hours at most."""
    given: dict[str, datetime] = {}
    for name, text in parameters:
        if name not in ("from", "to") or not text:
            continue
        if name in given:
            raise bad(name, f"{name} was given more than once.")
        given[name] = instant(name, text)
        if not EARLIEST <= given[name] <= now + LONGEST:
            raise bad(name, f"{name} must lie after the year 1999 and not in the future.")
    end = given.get("to") or (given["from"] + USUAL if "from" in given else now)
    start = given.get("from") or end - USUAL
    end = min(end, now)
    if start >= end:
        raise bad("from", "from must be earlier than to, and earlier than now.")
    if end - start > LONGEST:
        raise bad("from", "This is longer than 24 hours; ask for it in parts.")
    return Range(start, end)


def ask(
    context: Context, gpu_id: int, span: Range, actor: str, cluster: str | None = None
) -> Asked:
    """Queue the windows of a GPU and of its node's other GPUs; a repeat queues nothing.

    `cluster` limits it to placements there. Raises 404 for no such GPU, 409 where it is not known
    where to ask, and 429 while too many windows wait.
    """
    now = context.now()
    with context.store.reading() as connection:
        gpu, node = _placed(connection, gpu_id, cluster)
        uuids = [gpu.uuid, *_beside(connection, gpu, node)]
    start, end = span.on_grid
    wants = [Want(node.cluster, uuid, start, end, "asked", gpu.uuid) for uuid in uuids]

    def write(connection: Connection) -> int:
        known = telemetry_asked.known_wants(connection, gpu_id, [one.window_id for one in wants])
        if known == len(wants):
            return 0
        if telemetry_asked.waiting_for_people(connection) + len(wants) > MOST_WAITING:
            message = f"{MOST_WAITING} windows that were asked for by hand are the most to wait."
            raise Problem(429, "too_many", message, headers={"Retry-After": "60"})
        again = telemetry_queue.queue(connection, A_PERSON, wants, now, [*context.sources])
        telemetry_unread.open_again(connection, again)
        about = {"gpu": gpu.uuid, "from": rfc3339(start), "to": rfc3339(end), "gpus": len(wants)}
        words = f"Asked for the telemetry of {gpu.uuid} from {about['from']} to {about['to']}."
        audit.append(
            connection, actor, "telemetry_asked", words, at=now, node_id=node.id, details=about
        )
        return len(wants) - known

    return Asked(len(wants), context.store.write(write), node)


def ask_gpu_again(context: Context, gpu_id: int, span: Range, actor: str) -> int:
    """Queue once more what came to nothing in a time, of a GPU and those beside it."""
    with context.store.reading() as connection:
        gpu = gpu_by_id(connection, gpu_id)
        found = telemetry_asked.beside(connection, gpu_id, span.start, span.end, WINDOWS)
    if gpu is None:
        raise not_found("no GPU with this id")
    empty = [one.id for one in found if one.state in ENDED_EMPTY]
    return _again(context, empty, actor, f"of {gpu.uuid}")


def ask_alarm_again(context: Context, alarm_id: int, actor: str) -> int:
    """Queue once more what came to nothing of an alarm's windows and about its machines."""
    with context.store.reading() as connection:
        known = telemetry_asked.times_of(connection, [alarm_id])
        found = telemetry_queue.of_alarm(connection, alarm_id)
    if not known:
        raise not_found("no alarm with this id")
    empty = list({one.id for _, _, one in found if one.state in ENDED_EMPTY})
    return _again(context, empty, actor, f"around alarm {ids.show(alarm_id)}", alarm_id)


def _again(
    context: Context, window_ids: list[int], actor: str, of_what: str, alarm_id: int | None = None
) -> int:
    if not window_ids and alarm_id is None:
        return 0
    now = context.now()

    def write(connection: Connection) -> int:
        count = telemetry_queue.ask_again(connection, window_ids, now) if window_ids else 0
        if alarm_id is not None:
            count += node_evidence.ask_again(connection, alarm_id, now)
        if count:
            words = f"Asked again for the telemetry {of_what}: {count} of it had come to nothing."
            audit.append(connection, actor, "telemetry_asked_again", words, at=now)
        return count

    return context.store.write(write)


def _placed(connection: Connection, gpu_id: int, cluster: str | None) -> tuple[Gpu, Node]:
    gpu = gpu_by_id(connection, gpu_id)
    places = machines_of(connection, [gpu_id])
    here = [one.node for one in places if cluster in (None, one.node.cluster)]
    if gpu is None or (cluster is not None and not here):
        raise not_found("no GPU with this UUID or id")
    if gpu.form != "full":
        message = "A source is asked by whole UUIDs, and of this GPU none is known."
        raise Problem(409, "no_whole_uuid", message)
    if not here:
        message = "No rank map places this GPU, so it is not known which cluster to ask."
        raise Problem(409, "not_placed", message)
    return gpu, here[0]


def _beside(connection: Connection, gpu: Gpu, node: Node) -> list[str]:
    """List the GPUs whose newest placement is this node."""
    here = {one.gpu.id for one in gpus_in(connection, node.id) if one.gpu.form == "full"}
    newest: dict[int, Node] = {}
    for place in machines_of(connection, here):
        newest.setdefault(place.gpu.id, place.node)
    uuids = sorted(
        one.gpu.uuid
        for one in gpus_in(connection, node.id)
        if one.gpu.id != gpu.id and one.gpu.id in here and newest[one.gpu.id].id == node.id
    )
    return uuids[:BESIDE]
