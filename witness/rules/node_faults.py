"""What do the health agent's log lines and the node's own labels say, and of which GPU?

HyperPod's agent writes JSON lines; the inner and the outer time have been seen a day apart, and the
key of the details with a colon and a space in it. Faults also stand on the node as labels, as an
annotation with details, and as conditions. All of it is about a node: only a PCI address says which
GPU is meant.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from witness.rules import words
from witness.rules.dcgm_rows import Evidence
from witness.rules.moments import at, span
from witness.rules.observations import Observation, When, Window
from witness.rules.xid import AS_EVIDENCE, XidLine, xid_in_line, xid_of

PREFIX = "sagemaker.amazonaws.com/"
APPLICATION = "XidUserAppError"
"""The reason by which the agent says that it blames the application and does nothing."""

LONGEST_LINE = 65_536
_DETECTION = "HealthMonitoringAgentDetectionEvent"
_USUAL = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
_HARDWARE_READY = "AcceleratedHardwareReady"
_HARDWARE = ("Nvidia", "Xid", "Gpu", "DCGM", "Dcgm", _HARDWARE_READY)
_OVER = re.compile(r"Node condition \S{1,200} is now:\s{0,4}False\b")
FAR_APART_S = 3600.0
"""Two times of one line that differ by more than this are both said."""


@dataclass(frozen=True, slots=True)
class NodeFault:
    """One fault that was written down about a node.

    `source` is log, label, annotation or condition. `time` is None where none was given, which a
    label never has. `inner` is a second time in the same line. `xid` is what its message quotes.
    `over` says that it is written down as ended. `repeats` counts further ones of the same kind
    that are gathered here, the last of them at `until`.
    """

    source: str
    kind: str
    reason: str
    message: str
    time: float | None = None
    inner: float | None = None
    xid: XidLine | None = None
    over: bool = False
    repeats: int = 0
    until: float | None = None

    @property
    def evidence(self) -> Evidence:
        """Say how much it says about the hardware, of whichever GPU of the node."""
        if self.over or self.reason == APPLICATION:
            return "context"
        if self.xid is not None:
            return AS_EVIDENCE[xid_of(self.xid.number).kind]
        return "hardware" if f"{self.kind} {self.reason}".startswith(_HARDWARE) else "hint"

    @property
    def said(self) -> str:
        """Say in a sentence what was written down, without when and of which GPU."""
        return _what(self)


def agent_event(line: str) -> NodeFault | None:
    """Read one line of the agent's log; None where it is no detection, or no such line."""
    document = _json(line)
    if not isinstance(document, Mapping) or _DETECTION not in document:
        return None
    named = {str(key).strip().rstrip(":"): value for key, value in document.items()}
    details = named.get("details")
    if not isinstance(details, Mapping):
        return None
    message = _text(details.get("message"))
    return NodeFault(
        source="log",
        kind=_condition_in(message),
        reason=_text(details.get("reason")),
        message=message,
        time=_time(named.get("ts")),
        inner=_time(details.get("timestamp")),
        xid=xid_in_line(message),
        over=_OVER.search(message) is not None,
    )


def faults_on_node(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    conditions: Iterable[Mapping[str, Any]],
) -> tuple[NodeFault, ...]:
    """Read what stands on a Kubernetes node; values that cannot be read are kept as text."""
    found = []
    kinds = labels.get(f"{PREFIX}fault-types") or labels.get(f"{PREFIX}fault-type")
    reasons = labels.get(f"{PREFIX}fault-reasons") or labels.get(f"{PREFIX}fault-reason")
    if kinds or reasons:
        found.append(NodeFault("label", _text(kinds), _text(reasons), ""))
    details = annotations.get(f"{PREFIX}fault-details")
    if details:
        found += _detailed(details)
    found += [
        NodeFault(
            "condition",
            _text(one.get("type")),
            _text(one.get("reason")),
            _text(one.get("message")),
            _time(one.get("lastTransitionTime")),
            None,
            xid_in_line(_text(one.get("message"))),
        )
        for one in conditions
        if _is_fault(_text(one.get("type")), one.get("status"))
    ]
    return tuple(found)


def fault_observations(
    window: Window, faults: Sequence[NodeFault], pci: Sequence[str] = ()
) -> tuple[Observation, ...]:
    """Say what each fault means for one GPU, whose normalised PCI addresses are `pci`.

    A fault of another GPU of the node is context. One whose GPU is not known is a hint. One without
    a time, or with one outside of the window, counts for nothing: it may be older than the GPU, or
    follow from what was done about the alarm.
    """
    return tuple(_observed(window, one, pci) for one in dict.fromkeys(faults))


def _observed(window: Window, fault: NodeFault, pci: Sequence[str]) -> Observation:
    evidence = fault.evidence
    address = fault.xid.pci if fault.xid else None
    mine = address is not None and address in pci
    if address is not None and pci and not mine:
        evidence = "context"
    elif not mine and evidence == "hardware":
        evidence = "hint"
    when: When = "unknown" if fault.time is None else window.when(fault.time, fault.time)
    counts = evidence == "hardware" or (evidence == "hint" and when in {"window", "after"})
    # A node is read late, and a fault can stand on it for months: another GPU may sit there since.
    inside = fault.time is not None and window.start <= fault.time <= window.end
    return Observation(
        code="node_fault",
        field_id=None,
        evidence=evidence,
        risen=counts and inside,
        when=when,
        text=" ".join(
            sentence for sentence in (_what(fault), _whose(address, pci), _times(fault)) if sentence
        ),
        last=fault.time,
        xid=None if fault.xid is None else fault.xid.number,
    )


def _what(fault: NodeFault) -> str:
    named = " ".join(dict.fromkeys(one for one in (fault.kind, fault.reason) if one))
    text = f"The node's {fault.source} says {words.cut(named or 'a fault')}"
    if fault.over:
        return f"{text} is over."
    if fault.xid is not None:
        text += f", Xid {fault.xid.number} ({xid_of(fault.xid.number).text})"
        if fault.xid.recovery:
            text += f", asking for: {words.cut(fault.xid.recovery)}"
    if fault.reason == APPLICATION:
        text += ". The agent blames the application and took no action"
    return f"{text}."


def _whose(address: str | None, pci: Sequence[str]) -> str:
    if address is None:
        return "Which GPU of the node is meant is not said."
    if not pci:
        return f"It is the GPU at {address}; where this one sits is not known."
    return "" if address in pci else f"It is the GPU at {address}, not this one."


def _times(fault: NodeFault) -> str:
    if fault.time is None and fault.inner is not None:
        return f"Its times do not agree; the line itself says {at(fault.inner)}."
    if fault.time is None:
        return "No time is given."
    text = f"Written at {at(fault.time)}."
    if fault.repeats and fault.until is not None:
        text = f"Written {fault.repeats + 1:,} times, {span(fault.time, fault.until)}."
    if fault.inner is not None and abs(fault.inner - fault.time) > FAR_APART_S:
        text += f" The same line also says {at(fault.inner)}."
    return text


def _is_fault(kind: str, status: object) -> bool:
    """Tell whether a condition names a fault: those that end in Ready are good when True."""
    if kind == _HARDWARE_READY:
        return status == "False"
    return status == "True" and kind not in _USUAL and not kind.endswith("Ready")


def _detailed(details: str) -> list[NodeFault]:
    listed = _json(details)
    if not isinstance(listed, list):
        return [NodeFault("annotation", "", "", words.plain(words.cut(details, 500)))]
    return [
        NodeFault(
            "annotation",
            _text(one.get("type")),
            _text(one.get("reason")),
            _text(one.get("message")),
            _time(one.get("timestamp")),
            None,
            xid_in_line(_text(one.get("message"))),
        )
        for one in listed[:100]
        if isinstance(one, Mapping)
    ]


def _condition_in(message: str) -> str:
    """Find the condition's name in "Node condition X is now: True"."""
    before, found, after = message.partition("Node condition ")
    return words.cut(after.split(" ", 1)[0]) if found and len(before) < 100 else ""


def _json(text: str) -> Any:
    if len(text) > LONGEST_LINE:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: object) -> str:
    return words.plain(words.cut(value, 1_000)) if isinstance(value, str) else ""


def _time(value: object) -> float | None:
    """Read an ISO time, as UTC where it has no zone."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
