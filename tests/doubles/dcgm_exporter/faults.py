"""What can happen to a node, and when?

A script is a list of events; each happens once, at the first collection at or after its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.doubles.dcgm_exporter.metrics import VOLATILE

if TYPE_CHECKING:
    from tests.doubles.dcgm_exporter.node import Node

Happen = Callable[["Node", float], None]


@dataclass(frozen=True)
class Event:
    """One thing that happens at a time of the node's clock, given as seconds."""

    at: float
    happen: Happen


def _rise(gpu: int, **more: float) -> Happen:
    def happen(node: Node, now: float) -> None:
        for field, amount in more.items():
            node.gpus[gpu].values[field] += amount

    return happen


def _set(gpu: int, **more: float) -> Happen:
    def happen(node: Node, now: float) -> None:
        node.gpus[gpu].values.update(more)

    return happen


def corrected_errors(gpu: int, at: float, bursts: int = 4, apart: float = 1.0) -> Iterable[Event]:
    """Correct single-bit errors of one bad cell, a few bursts in a row."""
    more = {"DEV_ECC_SBE_VOL_TOTAL": 7.0, "DEV_ECC_SBE_AGG_TOTAL": 7.0}
    return [Event(at + place * apart, _rise(gpu, **more)) for place in range(bursts)]


def row_remap(gpu: int, at: float, later: float = 2.0) -> Iterable[Event]:
    """Find an uncorrectable error, remap its row (Xid 63), end the process (Xid 94)."""
    more = {"DEV_ECC_DBE_VOL_TOTAL": 1.0, "DEV_ECC_DBE_AGG_TOTAL": 1.0,
            "DEV_UNCORRECTABLE_REMAPPED_ROWS": 1.0}  # fmt: skip
    return [
        Event(at, _rise(gpu, **more)),
        Event(at, _set(gpu, DEV_ROW_REMAP_PENDING=1.0)),
        Event(at, lambda node, now: node.gpus[gpu].xid(now, 63)),
        Event(at + later, lambda node, now: node.gpus[gpu].xid(now, 94)),
    ]


def lost(gpu: int, at: float) -> Iterable[Event]:
    """Let a GPU fall off the bus (Xid 79): nothing of it is collected any more."""

    def happen(node: Node, now: float) -> None:
        node.gpus[gpu].xid(now, 79)
        node.gpus[gpu].lost = True

    return [Event(at, happen)]


def overheating(gpu: int, at: float, until: float) -> Iterable[Event]:
    """Let a GPU get so hot that the board slows it down, for a while."""

    def heated(is_hot: bool) -> Happen:
        return lambda node, now: setattr(node.gpus[gpu], "hot", is_hot)

    return [Event(at, heated(True)), Event(until, heated(False))]


def link_errors(gpu: int, link: int, at: float, times: int = 3, apart: float = 1.0) -> list[Event]:
    """Let one link of a GPU fail its checksums."""

    def happen(node: Node, now: float) -> None:
        node.gpus[gpu].links[link] += 5
        node.gpus[gpu].values["DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"] += 5

    return [Event(at + place * apart, happen) for place in range(times)]


def pcie_replays(gpu: int, at: float, times: int = 3, apart: float = 1.0) -> Iterable[Event]:
    """Let a GPU's PCIe link retry."""
    more = {"DEV_PCIE_REPLAY_COUNTER": 11.0}
    return [Event(at + place * apart, _rise(gpu, **more)) for place in range(times)]


def driver_reload(at: float) -> Iterable[Event]:
    """Load the driver anew: what it counts begins at 0, what the boards keep stays."""

    def happen(node: Node, now: float) -> None:
        for gpu in node.gpus:
            gpu.values.update(dict.fromkeys(VOLATILE, 0.0))
            gpu.links = [0] * len(gpu.links)
            gpu.xids.clear()

    return [Event(at, happen)]


def pod_moves(gpus: Iterable[int], pod: str, at: float) -> Iterable[Event]:
    """Give GPUs to another pod: every series of theirs goes on under another label."""
    moved = list(gpus)
    return [Event(at, lambda node, now: node.pods.update(dict.fromkeys(moved, pod)))]


def exporter_restart(at: float, seconds: float) -> Iterable[Event]:
    """Start the exporter again: it refuses for a while, and its own counts begin anew."""

    def happen(node: Node, now: float) -> None:
        node.away_until = now + seconds
        for gpu in node.gpus:
            gpu.xids.clear()
            gpu.held.clear()

    return [Event(at, happen)]


def idle(gpus: Iterable[int], at: float) -> Iterable[Event]:
    """Take the work away from GPUs."""
    without = list(gpus)

    def happen(node: Node, now: float) -> None:
        for gpu in without:
            node.gpus[gpu].load = 0.0

    return [Event(at, happen)]


def says_no_value(gpu: int, field: str, at: float = 0.0) -> Iterable[Event]:
    """Let DCGM have no value for a field; `field` is its old name."""
    return [Event(at, lambda node, now: node.gpus[gpu].blank.add(field))]
