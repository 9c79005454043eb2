"""How is further evidence about machines collected: taken, asked for, kept, and then read?

Work waits in the database, as windows of metrics do. A crash at any point leaves a claim that runs
out; what was kept already is not kept twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.actions.telemetry import log_of_node, reading, state_of_node
from app.actions.telemetry.node_answer import Answer, NoWay
from app.actions.telemetry.settling import BACK_OFF, GIVE_UP, NEVER
from app.cluster.errors import ClusterError, ClusterNotConfigured, ClusterRefused, NodeGone
from app.context import Context
from app.sources.ports import Away, Refused, SourceError
from app.sources.texts import one_line
from app.store import ids, node_evidence, node_records
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.node_evidence import NO_WAY, Evidence
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

TAKEN = 32  # questions taken in one round
LEASE = timedelta(minutes=15)  # longer than the slowest question
STORED_AFTER = timedelta(minutes=3)  # lines reach the log service with a delay, as labels do
TOO_BUSY = 429
MEANS = {"node": state_of_node.read, "log": log_of_node.read}


@dataclass(slots=True)
class _Round:
    """What a round met: places that are away are not asked once more in it; alarms to read."""

    away: dict[tuple[str, str], Exception] = field(default_factory=dict)
    alarms: set[int] = field(default_factory=set)


def collect_due(
    context: Context, worker: str, is_stopping: Callable[[], bool] = lambda: False
) -> int:
    """Collect what is due and read the alarms that ask for it; give how many questions."""
    now = context.now()
    with context.store.reading() as connection:
        if not node_evidence.is_due(connection, now, LEASE):
            return 0
    taken = context.store.write(
        lambda connection: node_evidence.claim(connection, worker, now, LEASE, TAKEN)
    )
    met = _Round()
    for one in taken:
        if is_stopping():
            context.store.write(lambda connection: node_evidence.release(connection, worker))
            break
        _collect(context, worker, one, now, met)
    _read(context, sorted(met.alarms))
    return len(taken)


def _collect(
    context: Context, worker: str, one: Evidence, claimed_at: datetime, met: _Round
) -> None:
    """Collect for one question that is still this worker's."""
    now = context.now()
    if now - claimed_at > LEASE / 3:
        held = context.store.write(lambda c: node_evidence.renew(c, one.id, worker, now))
        if not held:
            return
    try:
        answer = _ask(context, one, now, met)
        values, packed = _answered(one, answer, now), node_records.pack(one, answer.found)
    except (StoreUnavailable, QueueFull):
        raise
    except Exception as error:
        if not isinstance(error, SourceError | ClusterError | ClusterNotConfigured | NoWay):
            log.exception("evidence about %s of %s cannot be collected", one.label, one.cluster)
        if _is_away(error):
            met.away[one.cluster, one.kind] = error
        values, packed = _failed(one, error, now), []
    met.alarms |= context.store.write(lambda c: _settle(c, worker, one, values, packed, now))


def _ask(context: Context, one: Evidence, now: datetime, met: _Round) -> Answer:
    away = met.away.get((one.cluster, one.kind))
    if away is not None:
        raise away
    return MEANS[one.kind](context, one, now)


def _settle(
    connection: Connection,
    worker: str,
    one: Evidence,
    values: dict[str, Any],
    packed: Sequence[dict[str, Any]],
    now: datetime,
) -> set[int]:
    """Note what became of a question, with its records; give the alarms to be read anew.

    They wait for that in the same transaction: who ends before reading them leaves them waiting.
    """
    if not node_evidence.settle(connection, one.id, worker, values):
        return set()
    fresh = node_records.write(connection, packed, now)
    if not fresh and values["said"] == one.said:
        return set()
    rows = node_evidence.sharing(connection, one) if fresh else [one.id]
    alarms = node_evidence.askers(connection, rows)
    node_evidence.let_be_read(connection, alarms)
    return set(alarms)


def _answered(one: Evidence, answer: Answer, now: datetime) -> dict[str, Any]:
    """Say what stands in the row of a question that was answered; it is asked again at its end."""
    whole = now >= one.end + STORED_AFTER
    ended = "gone" if answer.gone else "done"
    return {
        "state": ended if whole else "queued",
        "next_at": one.end + STORED_AFTER,
        "read_at": now,
        "whole": whole,
        "cut": answer.cut or (one.cut and not whole),
        "said": answer.said,
        "tries": 0,
    }


def _failed(one: Evidence, error: Exception, now: datetime) -> dict[str, Any]:
    """Say what stands in the row of a question that nobody answered."""
    said = one_line(str(error))
    if isinstance(error, ClusterNotConfigured | NoWay):
        return {"state": NO_WAY, "said": said, "next_at": NEVER}
    if not isinstance(error, SourceError | ClusterError):
        said = f"A fault of this service ({type(error).__name__}); its log says more."
    was_refused = not _is_away(error) and isinstance(error, Refused | ClusterRefused)
    # Refused by ourselves: a name that no node can have, and never will.
    is_final = isinstance(error, ClusterRefused) and error.status is None
    if is_final or now - max(one.asked_at, one.start) >= GIVE_UP:
        if was_refused:
            return {"state": "refused", "said": said, "next_at": NEVER}
        return {"state": "given_up", "said": f"No answer for a day. {said}", "next_at": NEVER}
    wait = BACK_OFF[min(max(one.tries, 1), len(BACK_OFF)) - 1]
    asked_for = error.after_s if isinstance(error, Away) else getattr(error, "retry_after", None)
    wait = max(wait, int(asked_for or 0) + 1)
    state = "refused" if was_refused else "queued"
    return {"state": state, "said": said, "next_at": now + timedelta(seconds=wait)}


def _is_away(error: Exception) -> bool:
    """Tell whether asking the same place at once would only take time."""
    if isinstance(error, ClusterRefused):
        return error.status == TOO_BUSY
    return isinstance(error, Away) or (
        isinstance(error, ClusterError) and not isinstance(error, NodeGone | ClusterNotConfigured)
    )


def _read(context: Context, alarm_ids: Sequence[int]) -> None:
    for alarm_id in alarm_ids:
        try:
            reading.read_alarm(context, alarm_id)
        except (StoreUnavailable, QueueFull):
            raise
        except Exception:
            # It waits to be read; the puller's sweep takes it up, or sets it aside.
            log.exception("alarm %s cannot be read with new evidence", ids.show(alarm_id))
