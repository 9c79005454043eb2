"""What did a machine's health agent write in a time?"""

from __future__ import annotations

from datetime import UTC, datetime

from app.actions.telemetry.node_answer import Answer, NoWay
from app.context import Context
from app.sources.logs import LogLine, LogQuestion
from app.store import node_records
from app.store.node_evidence import Evidence
from app.store.node_records import Raw
from witness.rules.moments import at
from witness.rules.node_records import group_in, instance_in


def read(context: Context, one: Evidence, now: datetime) -> Answer:
    """Ask for the lines of a machine's agent until now; raises `NoWay` or `SourceError`."""
    log = context.node_logs.get(one.cluster)
    if log is None:
        raise NoWay("No log of this cluster's nodes is configured (WITNESS_NODE_LOGS).")
    with context.store.reading() as connection:
        kept = node_records.newest_node(connection, one.node_id)
    instance = one.instance_id or (instance_in(kept.record) if kept else None)
    if instance is None:
        raise NoWay("The instance id of this machine is not known, so its log cannot be found.")
    group = group_in(kept.record) if kept else None
    until = min(one.end, now).timestamp()
    if until <= one.start.timestamp():
        return Answer(said="It has not begun by the clock of this service.")
    found = log.read(LogQuestion(instance, group, one.start.timestamp(), until))
    return Answer(
        tuple(_raw(line) for line in found.lines),
        _cut(found.lines) if found.cut else None,
        found.cut,
    )


def _raw(line: LogLine) -> Raw:
    received = None if line.received is None else _moment(line.received)
    return Raw(line.text, _moment(line.at), received, line.stream, line.event_id)


def _cut(lines: tuple[LogLine, ...]) -> str:
    """Say what was taken of a log that holds more."""
    if not lines:
        return (
            "The log is too long to be looked through; no line of this machine was found in time."
        )
    first, last = (at(pick(line.at for line in lines)) for pick in (min, max))
    return f"The log holds more; the {len(lines):,} lines taken are from {first} to {last}."


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
