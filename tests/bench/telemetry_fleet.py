"""Which samples lie in the source, and which alarms wait for them?

Nodes of eight GPUs with the 26 fields of the add-on's advanced level, out of the exporter double. A
few nodes are simulated and the others are their likes under other UUIDs: what a sample costs does
not depend on whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.doubles.dcgm_exporter import faults
from tests.doubles.dcgm_exporter.node import Node, Style
from tests.doubles.dcgm_exporter.over_http import Written, history
from tests.prometheus import Prometheus

CLUSTER = "bench"
PER_NODE, JOB_NODES = 8, 4
RANKS = PER_NODE * JOB_NODES
FIELDS = 26
SIMULATED = 4
AT_A_TIME = 400  # series in one remote write
CELL_S = 300  # alarms of one such moment share their windows
CELLS = 6


@dataclass(frozen=True)
class Size:
    """How much is measured: alarms of the storm, nodes and scrape interval of its source.

    `node_step_s` is the interval of the node that is measured step by step.
    """

    alarms: int = 1_000
    nodes: int = 16
    step_s: float = 30.0  # the add-on's own interval
    node_step_s: float = 15.0
    rounds: int = 7
    browser: bool = True


WHOLE, QUICK = Size(), Size(alarms=100, nodes=8, rounds=3)


@dataclass(frozen=True)
class Fleet:
    """Nodes, and alarms that came while they were sampled; `until` is the last sample's time."""

    nodes: int
    step_s: float
    until: datetime
    hours: float

    def uuids(self, node: int) -> list[str]:
        """Name the GPUs of a node."""
        return [f"GPU-{node:08x}-0000-4000-8000-{gpu:012x}" for gpu in range(PER_NODE)]

    @property
    def times(self) -> list[float]:
        """List the times of all scrapes."""
        last, count = self.until.timestamp(), int(self.hours * 3600 / self.step_s)
        return [last - self.step_s * (count - place) for place in range(count + 1)]

    def write(self, prometheus: Prometheus) -> int:
        """Store all samples; give how many."""
        written = 0
        for first in range(min(SIMULATED, self.nodes)):
            found = self._history(first)
            for node in range(first, self.nodes, SIMULATED):
                series = [(self._moved(labels, first, node), values) for labels, values in found]
                for place in range(0, len(series), AT_A_TIME):
                    prometheus.write(series[place : place + AT_A_TIME])
                written += sum(len(values) for _, values in series)
        return written

    def _history(self, node: int) -> Written:
        script = [*faults.corrected_errors(5, self.hours * 3000), *faults.pcie_replays(2, 3600.0)]
        made = Node(self.uuids(node), _name(node), Style(level="advanced"), script, seed=node)
        return history(made, self.times)

    def _moved(self, labels: dict[str, str], old: int, new: int) -> dict[str, str]:
        uuid = labels["UUID"].replace(f"{old:08x}", f"{new:08x}", 1)
        return labels | {"UUID": uuid, "Hostname": _name(new)}

    def documents(self, alarms: int) -> Iterator[tuple[datetime, dict[str, Any]]]:
        """Tell jobs of four nodes and alarms: half of one job at one moment, half all over."""
        for job in range(self.nodes // JOB_NODES):
            yield self.until - timedelta(hours=self.hours), self._map(job)
        for number in range(alarms):
            yield self._alarm(number, alarms)

    def _map(self, job: int) -> dict[str, Any]:
        rows = [
            {
                "rank": rank,
                "node": _name(job * JOB_NODES + rank // PER_NODE),
                "instance_id": _name(job * JOB_NODES + rank // PER_NODE).removeprefix("hyperpod-"),
                "gpu_uuid": self.uuids(job * JOB_NODES + rank // PER_NODE)[rank % PER_NODE],
                "local_rank": rank % PER_NODE,
            }
            for rank in range(RANKS)
        ]
        return {"kind": "rank_map", **_head(job, self.until - timedelta(hours=self.hours)),
                "world_size": RANKS, "gpus_per_node": PER_NODE, "ranks": rows}  # fmt: skip

    def _alarm(self, number: int, alarms: int) -> tuple[datetime, dict[str, Any]]:
        jobs, together = self.nodes // JOB_NODES, alarms // 2
        end = self.until - timedelta(minutes=20)  # so that every window is whole
        if number < together:
            job, rank, cell = 0, PER_NODE + number % PER_NODE, 0
        else:
            job = min(1, jobs - 1) + number % max(jobs - 1, 1)
            rank, cell = number * 7 % RANKS, number // 3 % CELLS
        at = end - timedelta(seconds=cell * CELL_S + number % 250)
        step = 10 * number + 10
        said = {
            "step": step, "check": "compute", "nonfinite": [], "verdicts": [],
            "mismatched_pairs": [[rank, (rank - PER_NODE) % RANKS]], "culprits": [rank],
            "suspect_window": [step - 9, step], "last_audit_pass": step - 10,
            "last_weight_check_pass": step - 10,
        }  # fmt: skip
        head = {"kind": "alarm", **_head(job, at), "reporter_rank": 0, "step_time_s": 14.0}
        return at, {**head, "alarm": said}


def body(document: dict[str, Any]) -> str:
    """Write a document as it would be posted."""
    return json.dumps(document)


def _head(job: int, at: datetime) -> dict[str, Any]:
    time = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    named = {"cluster": CLUSTER, "namespace": "research", "job": f"job-{job:02}", "attempt": 1}
    return {**named, "time": time}


def _name(node: int) -> str:
    return f"hyperpod-i-{node:017x}"
