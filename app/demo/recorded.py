"""Which recorded runs come with the service, and what is said of them?

The documents were recorded in real runs of the three checks in PyTorch DDP processes over gloo, 24
and 32 ranks, with injected faults, one run a job.  Steps, checks, ranks, pairs, verdicts, windows,
checkpoints and durations are as recorded; cluster, namespace, nodes, instances, GPUs, addresses
and start times are invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
LABEL = {"example": "true"}
CLUSTER, NAMESPACE = "alpine", "research"
_DAY = timedelta(days=1)


def documents(now: datetime) -> Iterator[dict[str, Any]]:
    """Give every recorded document, marked as an example, in the order of its file.

    Where the clock stands before the recorded times, all of them move back by the same number of
    whole days, so that nothing lies in the future.
    """
    back = days_back(now)
    for path in sorted(DATA.glob("*.ndjson")):
        for line in path.read_text(encoding="utf-8").splitlines():
            document: dict[str, Any] = json.loads(line)
            labels = document.get("labels") or {}
            yield _moved({**document, "labels": {**labels, **LABEL}}, back)


def days_back(now: datetime) -> int:
    """Count the whole days by which the recorded times have to move; 0 as a rule."""
    newest = max(
        _read(json.loads(line)["time"])
        for path in DATA.glob("*.ndjson")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    return 0 if newest <= now else (newest - now) // _DAY + 1


def _moved(value: Any, days: int) -> Any:
    """Move the times of a document: `time`, and `saved_at` of its checkpoints."""
    if days == 0:
        return value
    moved = {**value, "time": _earlier(value["time"], days)}
    if "checkpoints" in value:
        moved["checkpoints"] = [
            {**one, "saved_at": _earlier(one["saved_at"], days)} if one.get("saved_at") else one
            for one in value["checkpoints"]
        ]
    return moved


def _earlier(text: str, days: int) -> str:
    at = _read(text) - days * _DAY
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
