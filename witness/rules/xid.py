"""What does an Xid mean, whose fault is it first, and when did it happen?

After NVIDIA's catalogue for driver 590 as the HyperPod health suite applies it. The class says
where to look first; it is not a verdict: a wrong value can crash an application that is correct.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from witness.rules.dcgm_rows import Evidence

XidClass = Literal[
    "application", "hardware", "driver", "side_effect", "information", "recovery", "unknown"
]

AS_EVIDENCE: Mapping[XidClass, Evidence] = MappingProxyType(
    {
        "hardware": "hardware",
        "recovery": "hardware",
        "driver": "hint",
        "unknown": "hint",
        "application": "context",
        "side_effect": "context",
        "information": "context",
    }
)
"""How much a new Xid of a class says about the hardware."""


@dataclass(frozen=True, slots=True)
class Xid:
    """One kind of driver error: what it is, its class, and what is to be done at the GPU."""

    number: int
    text: str
    kind: XidClass
    action: str


def _table() -> Mapping[int, Xid]:
    reset, reboot, restart = "reset the GPU", "reboot the node", "restart the application"
    rows: tuple[tuple[tuple[int, ...], str, XidClass, str], ...] = (
        ((13,), "graphics engine exception", "application", restart),
        ((31,), "memory page fault", "application", restart),
        ((43,), "GPU stopped processing", "side_effect", "none"),
        ((45,), "cleanup after another error", "side_effect", "none"),
        ((48,), "uncorrectable memory error", "hardware", reset),
        ((54,), "auxiliary power not connected", "hardware", "take the node out"),
        ((61, 62), "internal microcontroller fault", "hardware", reset),
        ((63,), "row remapping recorded", "hardware", "none; takes effect at the next reset"),
        ((64,), "row remapping failed", "hardware", f"{reset}; on A100 {reboot}"),
        ((74,), "NVLink error", "hardware", f"{reset}; look for a switch error (SXid)"),
        ((79,), "GPU has fallen off the bus", "hardware", reboot),
        ((92,), "high rate of corrected memory errors", "hardware", "watch it"),
        ((94,), "contained memory error", "hardware", restart),
        ((95,), "uncontained memory error", "hardware", f"{reset}; on A100 {reboot}"),
        ((109,), "context switch timeout", "driver", reset),
        ((110,), "security fault", "driver", reset),
        ((119,), "GPU system processor timeout", "driver", reset),
        ((120,), "GPU system processor error", "driver", reset),
        ((121,), "chip-to-chip link corrected error", "information", "none"),
        ((125,), "board information ROM error", "information", "ask support if it stays"),
        ((136,), "link training failed", "hardware", reset),
        ((140,), "unrecovered memory error", "hardware", reset),
        ((143,), "GPU initialization failed", "driver", reset),
        (tuple(range(144, 151)), "NVLink error (fifth generation)", "hardware", "watch it"),
        ((154,), "recovery action changed", "recovery", "as its message says"),
        ((155, 156, 158), "driver or firmware fault", "driver", reset),
        ((157,), "page retirement failed", "hardware", "ask support"),
        (tuple(range(162, 166)), "power smoothing", "information", "none"),
        ((168,), "reduced memory", "hardware", reboot),
        ((171,), "uncorrectable error in device memory", "hardware", reset),
        ((172,), "uncorrectable error in SRAM", "hardware", reset),
    )
    return MappingProxyType(
        {
            number: Xid(number, text, kind, action)
            for numbers, text, kind, action in rows
            for number in numbers
        }
    )


XIDS: Mapping[int, Xid] = _table()


def xid_of(number: int) -> Xid:
    """Look an Xid up; one that is not in the table is `unknown`, not harmless."""
    return XIDS.get(number) or Xid(number, "not known here", "unknown", "look it up")


RECOVERY_ACTIONS: Mapping[int, str] = MappingProxyType(
    {
        0: "none",
        1: "reset the GPU",
        2: "reboot the node",
        3: "drain peer traffic",
        4: "drain, then reset the GPU",
    }
)
"""Values of field 1523."""


@dataclass(frozen=True, slots=True)
class XidSeen:
    """One value of the last-Xid gauge.

    `before` is the last sample with another value: the Xid came after it. None where the value
    stood in the first sample, so that it happened at any time before `at`. `until` is the last
    sample that shows it. Number 0 means that the exporter or the driver was started again.
    """

    number: int
    before: float | None
    at: float
    until: float


def values_of_gauge(times: Sequence[float], values: Sequence[float]) -> tuple[XidSeen, ...]:
    """Cut the gauge into stretches of one value; each is one Xid, however many samples it fills.

    Not seen: a second, equal Xid, and one that another overwrote between two samples.
    """
    if not times:
        return ()
    edges = [0, *(at for at in range(1, len(values)) if values[at] != values[at - 1]), len(values)]
    return tuple(
        XidSeen(
            number=round(values[first]),
            before=times[first - 1] if first else None,
            at=times[first],
            until=times[end - 1],
        )
        for first, end in pairwise(edges)
    )


@dataclass(frozen=True, slots=True)
class XidLine:
    """An Xid in a line of the kernel log, or of an agent that quotes it.

    `pci` is normalised as by `pci_address`. `recovery` is the action that an Xid 154 asks for.
    """

    pci: str
    number: int
    message: str
    recovery: str | None


# Not an SXid: that is a number of its own, of an NVSwitch.
_LINE = re.compile(
    r"(?<![a-z])Xid\s{0,4}\((?:PCI:)?([0-9a-f:.]{4,24})\)\s{0,4}:\s{0,4}(\d{1,4})\b[,\s]{0,4}(.{0,500})",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"recovery action changed from .{0,60} to (?:0x\w{1,8}\s{0,2})?\(([^)]{1,60})\)", re.I
)
_PCI = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?", re.IGNORECASE)


def xid_in_line(line: str) -> XidLine | None:
    """Find an Xid in one log line; None where there is none."""
    found = _LINE.search(line[:4_000])
    pci = pci_address(found.group(1)) if found else None
    if found is None or pci is None:
        return None
    message = found.group(3).strip().strip('"')
    changed = _CHANGED.search(message)
    return XidLine(pci, int(found.group(2)), message, changed.group(1) if changed else None)


def pci_address(text: str) -> str | None:
    """Write a PCI address as `0000:1b:00`, the form that DCGM's and the kernel's share.

    The domain has four digits, the function is dropped; None where it is no address.
    """
    found = _PCI.fullmatch(text.strip())
    if found is None:
        return None
    domain = (found.group(1) or "0").lstrip("0").rjust(4, "0")
    return f"{domain}:{found.group(2)}:{found.group(3)}".lower()
