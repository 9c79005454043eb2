"""Which faults does one raw record of a node hold: a line of its agent, or the node as it was read?

A line has up to four times: two inside, the one under which the log service keeps it, and the one
at which the service took it in. Only the last is from a clock that is not the node's.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from witness.rules import words
from witness.rules.identity import instance_id
from witness.rules.node_faults import (
    FAR_APART_S,
    PREFIX,
    NodeFault,
    agent_event,
    fault_observations,
    faults_on_node,
)
from witness.rules.observations import Observation, Window

HEALTH = f"{PREFIX}node-health-status"
DEEP_CHECK = f"{PREFIX}deep-health-check-status"
GROUP = f"{PREFIX}instance-group-name"
STANDING = (HEALTH, DEEP_CHECK)
"""Labels that say how HyperPod treats a node. A person or a service may have set them."""

MOST_OBSERVATIONS = 60
_GROUP = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
AHEAD_S = 300.0
"""A line that is kept under a time this much after it was taken in has a clock that is ahead."""
RUN_S = 600.0
"""Lines of one kind that follow each other within this are one entry."""


@dataclass(frozen=True, slots=True)
class Record:
    """One raw record: `kind` log or node, `text` as it came.

    `at` is the time under which the log service keeps a line, or when the node was read;
    `received` when the service took the line in. `other` says why it is about another machine of
    the same name; None where nothing speaks for that.
    """

    kind: Literal["log", "node"]
    text: str
    at: float
    received: float | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A label that says how the node is treated, and who wrote it last; None where not told."""

    label: str
    value: str
    writer: str | None


def faults_in(record: Record) -> tuple[NodeFault, ...]:
    """Read the faults of a record; none where it cannot be read or is about another machine."""
    if record.other is not None:
        return ()
    if record.kind == "log":
        fault = agent_event(record.text)
        told = fault is not None and (fault.kind or fault.reason or fault.xid)
        return (_timed(fault, record),) if fault is not None and told else ()
    node = _node(record.text)
    metadata = _object(node.get("metadata"))
    return faults_on_node(
        _texts(metadata.get("labels")),
        _texts(metadata.get("annotations")),
        _objects(_object(node.get("status")).get("conditions")),
    )


def standing_in(record: Record) -> tuple[Standing, ...]:
    """Read how HyperPod treats the node. That is no evidence: its own order may have set it."""
    if record.kind != "node" or record.other is not None:
        return ()
    node = _node(record.text)
    labels = _texts(_object(node.get("metadata")).get("labels"))
    return tuple(
        Standing(one, words.plain(labels[one]), _writer(node, one))
        for one in STANDING
        if one in labels
    )


def group_in(record: Record) -> str | None:
    """Find the instance group that a node says it is of."""
    if record.kind != "node" or record.other is not None:
        return None
    said = _texts(_object(_node(record.text).get("metadata")).get("labels")).get(GROUP, "")
    return said if _GROUP.fullmatch(said) else None


def instance_in(record: Record) -> str | None:
    """Find the instance id of a node that was read, from its name or its provider's id."""
    if record.kind != "node" or record.other is not None:
        return None
    node = _node(record.text)
    name = _object(node.get("metadata")).get("name")
    provider = _object(node.get("spec")).get("providerID")
    return instance_id(
        name if isinstance(name, str) else None,
        None,
        provider if isinstance(provider, str) else None,
    )


def gathered(
    faults: Iterable[NodeFault], apart: Callable[[NodeFault], object] = lambda _: None
) -> tuple[NodeFault, ...]:
    """Put faults of one kind and GPU that follow each other together: thousands come in a storm.

    `apart` gives what keeps two of one kind apart. Equal lines of a log are so many lines; what
    stands on a node is one however often it was read. By time, those without a time last.
    """
    found: list[NodeFault] = []
    newest: dict[tuple[object, ...], int] = {}
    for one in sorted(_once(faults), key=_order):
        key = (*_kind(one), apart(one))
        place = newest.get(key)
        before = None if place is None else found[place]
        if place is None or before is None or not _follows(before, one):
            newest[key] = len(found)
            found.append(one)
        else:
            found[place] = replace(before, repeats=before.repeats + 1, until=one.time)
    return tuple(found)


def faults_around(window: Window, records: Iterable[Record]) -> tuple[NodeFault, ...]:
    """Gather the faults of a node's records around one alarm, whichever GPU they are of."""
    faults = [fault for one in records for fault in faults_in(one)]
    return gathered(faults, when_of(window))


def further_observations(
    window: Window, faults: Sequence[NodeFault], pci: Sequence[str] = ()
) -> tuple[Observation, ...]:
    """Say what the gathered faults of a node mean for one GPU at the addresses `pci`."""
    observed = fault_observations(window, faults, pci)
    if len(observed) <= MOST_OBSERVATIONS:
        return observed
    kept = sorted(observed, key=lambda one: (not one.risen, one.when == "before"))
    left = words.counted(len(kept) - MOST_OBSERVATIONS, "further entry", "further entries")
    more = Observation(
        code="node_fault",
        field_id=None,
        evidence="context",
        risen=False,
        when="unknown",
        text=f"The node's log has {left} of other kinds; all are kept.",
    )
    return (*kept[:MOST_OBSERVATIONS], more)


def when_of(window: Window) -> Callable[[NodeFault], object]:
    """Give what keeps faults before the suspect window, in it and after it apart."""
    return lambda one: None if one.time is None else window.when(one.time, one.time)


def _timed(fault: NodeFault, record: Record) -> NodeFault:
    """Choose the time that counts; the line's own is said beside it where it is another.

    The line's own where the log service's agrees, else the service's where the line reached it
    soon after; where no two agree there is none. Nothing is written after it was taken in.
    """
    inner = fault.inner if fault.time is None else fault.time
    if record.received is not None and record.at - record.received > AHEAD_S:
        return replace(fault, time=record.received, inner=inner)
    if fault.time is not None and abs(fault.time - record.at) <= FAR_APART_S:
        return fault
    prompt = record.received is None or record.received - record.at <= FAR_APART_S
    return replace(fault, time=record.at if prompt else None, inner=inner)


def _once(faults: Iterable[NodeFault]) -> list[NodeFault]:
    listed = list(faults)
    standing = dict.fromkeys(one for one in listed if one.source != "log")
    return [*standing, *(one for one in listed if one.source == "log")]


def _follows(before: NodeFault, one: NodeFault) -> bool:
    if before.time is None or one.time is None:
        return before.time is None and one.time is None
    return one.time - (before.time if before.until is None else before.until) <= RUN_S


def _order(one: NodeFault) -> tuple[bool, float]:
    return one.time is None, one.time or 0.0


def _kind(one: NodeFault) -> tuple[object, ...]:
    xid = one.xid
    told = None if xid is None else (xid.pci, xid.number, xid.recovery)
    # Without an Xid the message is what tells two faults of one reason apart.
    return one.source, one.kind, one.reason, one.over, told or one.message


def _writer(node: Mapping[str, Any], label: str) -> str | None:
    """Find who wrote a label last."""
    metadata = _object(node.get("metadata"))
    for entry in _objects(metadata.get("managedFields")):
        of_metadata = _object(_object(entry.get("fieldsV1")).get("f:metadata"))
        if f"f:{label}" in _object(of_metadata.get("f:labels")):
            return words.plain(words.cut(str(entry.get("manager") or ""))) or None
    return None


def _node(text: str) -> Mapping[str, Any]:
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _texts(value: object) -> dict[str, str]:
    found = _object(value).items()
    return {str(key): text for key, text in found if isinstance(text, str)}
