"""What does reporting cost the job: an alarm by the state of the server, a pass, the end?"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import Report, quantile
from tests.bench.server import TOKEN, Server
from tests.witness_report import hostile
from tests.witness_report.hostile import BlackHole, HostileServer
from witness import wire
from witness.report import Envelope, Reporter

RANKS = 32
FLOOR = "write and fsync of the same bytes"
ENVELOPE = Envelope("alpine", "research", "bench", 1)
MS = 1_000.0


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Time alarms under each state of the server beside writes of the same bytes; then passes."""
    calls = 20 if quick else 100
    with tempfile.TemporaryDirectory(dir=folder) as name:
        here = Path(name)
        for state in ("up", "down", "slow", "answers 500", "silent", "black hole"):
            with _server(state, here) as url:
                _alarms(report, here, state, url, calls)
        _passes(report, here, 20_000 if quick else 200_000)
        _large_map(report, here, 10_000 if quick else 100_000)


@contextmanager
def _server(state: str, folder: Path) -> Iterator[str]:
    """Give the address of a server in a state."""
    with ExitStack() as stack:
        if state == "up":
            (folder / "service").mkdir()
            server = Server(folder / "service")
            stack.callback(server.close)
            yield f"http://127.0.0.1:{server.port}"
        elif state == "down":
            yield "http://127.0.0.1:9"
        elif state == "black hole":
            yield stack.enter_context(BlackHole()).url
        else:
            made = stack.enter_context(HostileServer(hostile.answer(500)))
            if state == "slow":
                made.behaviour = _slow(made)
            elif state == "silent":
                made.behaviour = hostile.silent(made)
            yield made.url


def _slow(server: HostileServer) -> hostile.Behaviour:
    def behave(line: Any, body: bytes) -> None:
        server.stopping.wait(5)
        hostile.accepting(line, body)

    return behave


def _alarms(report: Report, folder: Path, state: str, url: str, calls: int) -> None:
    spool = Path(tempfile.mkdtemp(dir=folder))
    reporter = Reporter(ENVELOPE, url=url, token=TOKEN, spool=spool / "spool")
    reporter.rank_map([{"rank": rank, "node": f"n{rank}"} for rank in range(RANKS)], RANKS)
    reporter.alarm(_alarm(0))  # starts the threads, makes the folder
    time.sleep(0.3)
    took, bare = [], []
    for number in range(1, calls + 1):
        line = wire.to_line(wire.alarm(ENVELOPE, _alarm(number), 0))
        bare.append(_timed(lambda line=line, number=number: _bare(spool / f"{number}", line)))  # type: ignore[misc]
        took.append(_timed(lambda number=number: reporter.alarm(_alarm(number))))  # type: ignore[misc]
    end = _timed(reporter.close)
    floor = median(bare)
    report.add("reporter", f"the floor, beside server {state}", _shown(bare))
    what = f"alarm(), server {state}: median / p90 / worst of {calls}"
    report.add("reporter", what, _shown(took), FLOOR, median(took) / floor)
    waiting = len(list((spool / "spool").glob("run-*/*.json")))
    report.add("reporter", f"close() after them, left in the spool {waiting}", f"{end:.2f} s")


def _shown(values: list[float]) -> str:
    chosen = (median(values), quantile(values, 0.9), max(values))
    return " / ".join(f"{one * MS:.2f}" for one in chosen) + " ms"


def _bare(file: Path, line: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(descriptor, line)
    os.fsync(descriptor)
    os.close(descriptor)


def _alarm(number: int) -> dict[str, Any]:
    """Make an alarm of about 3 KB, as 32 ranks raise it."""
    digest = "0123456789abcdef"
    return {
        "check": "compute",
        "step": 1_000 + number,
        "nonfinite": [],
        "mismatched_pairs": [[13, 5], [21, 13]],
        "culprits": [13],
        "verdicts": [],
        "suspect_window": [991 + number, 1_000 + number],
        "world_size": RANKS,
        "digests": {str(rank): {"own": digest, "replay": digest} for rank in range(RANKS)},
    }


def _passes(report: Report, folder: Path, calls: int) -> None:
    reporter = Reporter(ENVELOPE, url=None, token=None, spool=folder / "passes")
    lock = threading.RLock()

    def empty(_: int) -> None:
        return

    def locked(_: int) -> None:
        with lock:
            return

    def passed(step: int) -> None:
        reporter.passed("nonfinite", step, gpus=RANKS, step_time_s=0.15)

    per_call = {}
    for name, function in (("empty", empty), ("locked", locked), ("passed", passed)):
        per_call[name] = min(_per_call(function, calls) for _ in range(5))
    reporter.close()
    cost, nanoseconds = per_call["passed"], 1e9
    shown = f"{cost * nanoseconds:.0f} ns"
    report.add("reporter", "passed()", shown, "an empty function's call", cost / per_call["empty"])
    report.add("reporter", "passed()", shown, "taking and giving a lock", cost / per_call["locked"])


def _per_call(function: Callable[[int], None], calls: int) -> float:
    began = time.perf_counter()
    for step in range(calls):
        function(step)
    return (time.perf_counter() - began) / calls


def _large_map(report: Report, folder: Path, ranks: int) -> None:
    rows = [{"rank": rank, "node": f"node-{rank // 8}", "gpu_uuid": f"GPU-{rank:032x}"}
            for rank in range(ranks)]  # fmt: skip
    reporter = Reporter(ENVELOPE, url=None, token=None, spool=folder / "map")
    took = _timed(lambda: reporter.rank_map(rows, ranks))
    copied = _timed(lambda: [dict(row) for row in rows])
    reporter.close(60)
    what = f"rank_map() of {ranks:,} ranks"
    report.add("reporter", what, f"{took * MS:.0f} ms", "a copy of its rows", took / copied)


def _timed(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began
