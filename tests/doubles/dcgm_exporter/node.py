"""What does the exporter of a node with eight GPUs say at a time?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from tests.doubles.dcgm_exporter.faults import Event
from tests.doubles.dcgm_exporter.gpu import Gpu
from tests.doubles.dcgm_exporter.metrics import (
    CLOCK_COUNT,
    LEVELS,
    LINK_ERRORS,
    METRICS,
    XID_COUNT,
    Level,
    Metric,
)

XID_TEXTS = {0: "No Error", 63: "Row remapping recorded", 79: "GPU has fallen off the bus",
             94: "Contained ECC error"}  # fmt: skip
BLANK_WHOLE, BLANK_REAL = "9223372036854775794", "140737488355330.000000"
"""How an older exporter prints DCGM's “not supported”; a newer one leaves the sample out."""


@dataclass(frozen=True)
class Style:
    """What differs between versions and set-ups of the exporter.

    `renamed`: names of DCGM 4.6. `host_label`: `Hostname`, or `hostname` in the newest. `mig`: the
    profile of a split GPU, None where none is split. `collect_s`: seconds for which a collection is
    given again. `window_ms`: length of the exporter's own counts.
    """

    level: Level = "extra"
    renamed: bool = False
    drops_blanks: bool = True
    host_label: Literal["Hostname", "hostname"] = "Hostname"
    mig: str | None = None
    collect_s: float = 0.0
    window_ms: int = 300_000
    links: int = 2


@dataclass
class Node:
    """A node's GPUs and exporter; `now` is given by whoever asks, and only goes forward.

    The script begins with the first collection, at `start`.
    """

    uuids: Sequence[str]
    name: str
    style: Style = field(default_factory=Style)
    script: Iterable[Event] = ()
    seed: int = 7
    start: float | None = None
    away_until: float = float("-inf")
    pods: dict[int, str] = field(default_factory=dict)
    gpus: list[Gpu] = field(init=False)

    def __post_init__(self) -> None:
        """Set up the GPUs; all are in one pod."""
        self.gpus = [
            Gpu(index, uuid, Random(f"{self.seed}/{index}"))
            for index, uuid in enumerate(self.uuids)
        ]
        self.pods = {one.index: "train-worker-0" for one in self.gpus} | self.pods
        self._events = sorted(self.script, key=lambda one: one.at)
        self._now, self._page, self._collected = 0.0, "", float("-inf")

    def page(self, now: float) -> str | None:
        """Give the exporter's text; None while it is away."""
        if now - self._collected >= self.style.collect_s:
            self._advance(now)
            self._page, self._collected = "".join(self._lines(now)), now
        return None if now < self.away_until else self._page

    def _advance(self, now: float) -> None:
        if self.start is None:
            self.start = self._now = now
        while self._events and self._events[0].at <= now - self.start:
            self._events.pop(0).happen(self, now)
        for gpu in self.gpus:
            gpu.step(now, max(now - self._now, 0.0))
        self._now = max(now, self._now)

    def _lines(self, now: float) -> Iterator[str]:
        levels = LEVELS[self.style.level]
        there = [gpu for gpu in self.gpus if not gpu.lost]
        for metric in METRICS:
            if metric.level in levels:
                name = metric.name(self.style.renamed)
                yield _head(name, metric.help, metric.kind)
                yield from (self._sample(gpu, metric, name) for gpu in there)
        if "extra" not in levels:
            return
        name = LINK_ERRORS.name(self.style.renamed)
        yield _head(name, LINK_ERRORS.help, LINK_ERRORS.kind)
        for gpu in there:
            for link, errors in enumerate(gpu.links[: self.style.links]):
                yield f"{name}{{{self._link(gpu, link)}}} {errors}\n"
        yield from self._counts(there, now - self.style.window_ms / 1000)

    def _sample(self, gpu: Gpu, metric: Metric, name: str) -> str:
        if metric.old in gpu.blank:
            if self.style.drops_blanks:
                return ""
            value = BLANK_WHOLE if metric.whole else BLANK_REAL
        else:
            number = gpu.values[metric.old]
            value = str(round(number)) if metric.whole else f"{number:.6f}"
        more = {}
        if metric.old == "DEV_XID_ERRORS":
            xid = round(gpu.values[metric.old])
            more = {"err_code": str(xid), "err_msg": XID_TEXTS.get(xid, "Unknown Error")}
        return f"{name}{{{self._labels(gpu, **more)}}} {value}\n"

    def _counts(self, there: list[Gpu], since: float) -> Iterator[str]:
        """Write what the exporter counts itself: a 0 without the label where nothing was."""
        window = {"window_size_in_ms": str(self.style.window_ms)}
        name, told = XID_COUNT
        yield _head(name, told, "counter")
        for gpu in there:
            for xid, count in gpu.recent_xids(since).items() or [(None, 0)]:
                named = {} if xid is None else {"xid": str(xid)}
                yield f"{name}{{{self._labels(gpu, **window, **named)}}} {count}\n"
        name, told = CLOCK_COUNT
        yield _head(name, told, "counter")
        for gpu in there:
            for event, count in gpu.recent_events(since).items() or [(None, 0)]:
                named = {} if event is None else {"clock_event": event}
                yield f"{name}{{{self._labels(gpu, **window, **named)}}} {count}\n"

    def _labels(self, gpu: Gpu, **more: str) -> str:
        split: dict[str, str] = {}
        if self.style.mig:
            split = {"GPU_I_PROFILE": self.style.mig, "GPU_I_ID": "3"}
        said = {
            "gpu": str(gpu.index),
            "UUID": gpu.uuid,
            "pci_bus_id": _pci(gpu),
            "device": f"nvidia{gpu.index}",
            "modelName": "NVIDIA H100 80GB HBM3",
            **split,
            self.style.host_label: self.name,
            "DCGM_FI_DRIVER_VERSION": "570.172.08",
            **self._workload(gpu),
            **more,
        }
        return _written(said)

    def _link(self, gpu: Gpu, link: int) -> str:
        said = {
            "nvlink": str(link),
            "gpu": str(gpu.index),
            "gpu_uuid": gpu.uuid,
            "pci_bus_id": _pci(gpu),
            "device": f"nvidia{gpu.index}",
            "model_name": "NVIDIA H100 80GB HBM3",
            "hostname": self.name,
            **self._workload(gpu),
        }
        return _written(said)

    def _workload(self, gpu: Gpu) -> dict[str, str]:
        return {"container": "main", "namespace": "research", "pod": self.pods[gpu.index]}


def _head(name: str, told: str, kind: str) -> str:
    return f"# HELP {name} {told}\n# TYPE {name} {kind}\n"


def _pci(gpu: Gpu) -> str:
    return f"00000000:{0x53 + gpu.index:02X}:00.0"


def _written(labels: dict[str, str]) -> str:
    return ",".join(f'{key}="{value}"' for key, value in labels.items())
