"""A running application, a browser that is signed in, and documents of an invented fleet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from app.config import Settings
from app.context import Context
from app.main import create_app, make_context
from app.store import people

HOST = "http://witness.test"
TOKEN = "the-token-of-the-timeline-tests"
CASES = Path(__file__).resolve().parent.parent / "data" / "cases"
NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
_PATHS = {"alarm": "alarms", "ranks": "rank-maps", "checkpoints": "checkpoints"}


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """Read the clock."""
        return self.now


class Fleet:
    """The application with one person signed in; posts as the administrator's token."""

    def __init__(self, url: str, folder: Path) -> None:
        """Open the application on a migrated database."""
        settings = Settings(database_url=url, data_dir=folder, admin_token=TOKEN)
        made = make_context(settings)
        self.clock = Clock()
        self.context = Context(made.settings, made.store, made.clusters, self.clock)
        self.store = made.store
        self.app: FastAPI = create_app(settings, self.context)
        self.http = TestClient(self.app, base_url=HOST, raise_server_exceptions=False)
        path = self.sign_in_path()
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.http.get(path).text)
        assert found
        answer = self.http.post(path, data={"csrf": found[1]}, follow_redirects=False)
        assert answer.status_code == 303, answer.text

    def sign_in_path(self) -> str:
        """Give a fresh link for a viewer."""
        now = self.clock()
        person, _ = self.store.write(lambda c: people.ensure(c, "T. Reyes", "viewer", now))
        return "/sign-in/" + self.store.write(lambda c: people.make_link(c, person.id, now, 60))

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def page(self, path: str, status: int = 200, **more: Any) -> str:
        """Open a page."""
        answer = self.get(path, **more)
        assert answer.status_code == status, answer.text[:2_000]
        text: str = answer.text
        return text

    def get(self, path: str, **more: Any) -> Response:
        """Open an address as the person who is signed in."""
        return self.http.get(path, follow_redirects=False, **more)

    def api(self, path: str) -> Any:
        """Read JSON as a program."""
        answer = self.http.get("/api/v1/" + path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, document: dict[str, Any]) -> dict[str, Any]:
        """Send one document to the address of its kind."""
        path = next(path for key, path in _PATHS.items() if key in document)
        return self._send(path, json.dumps(document))

    def post_all(self, lines: Iterable[dict[str, Any]]) -> None:
        """Send lines with their `kind` in one batch; all have to be accepted."""
        lines = list(lines)
        body = "\n".join(json.dumps(line) for line in lines)
        said = self._send("events", body)
        assert said["accepted"] == len(lines), said

    def post_case(self, name: str, file: str = "events.ndjson") -> None:
        """Send the documents of a case one after the other."""
        for line in (CASES / name / file).read_text().splitlines():
            self.post(json.loads(line))

    def _send(self, path: str, body: str) -> dict[str, Any]:
        answer = self.http.post(
            f"/api/v1/{path}", content=body, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        assert answer.status_code in (200, 201), answer.text
        said: dict[str, Any] = answer.json()
        return said


def chart_of(page: str) -> dict[str, Any]:
    """Read what the chart script gets."""
    found = re.search(r'<script type="application/json" id="timeline-data">(.*?)</script>', page)
    assert found, page[:500]
    read: dict[str, Any] = json.loads(found[1], parse_constant=_refuse)
    return read


def _refuse(token: str) -> None:
    raise AssertionError(f"{token} is not JSON")


def at(minutes: float = 0.0) -> str:
    """Write a time so many minutes after ten o'clock."""
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def envelope(job: str = "llama-953m", **more: Any) -> dict[str, Any]:
    """Begin a document."""
    return {"cluster": "alpine", "namespace": "research", "job": job, "attempt": 1, **more}


def rank_map(
    job: str = "llama-953m", nodes: int = 4, first: int = 1, **more: Any
) -> dict[str, Any]:
    """Place eight ranks on each of some nodes."""
    ranks = []
    for rank in range(nodes * 8):
        node = first + rank // 8
        ranks.append(
            {
                "rank": rank,
                "node": f"hyperpod-i-0c0ffee{node:010x}",
                "instance_id": f"i-0c0ffee{node:010x}",
                "gpu_uuid": f"GPU-a{node:07x}-1111-4222-8333-{rank % 8:012x}",
                "gpu_index": rank % 8,
            }
        )
    document = {"kind": "rank_map", **envelope(job, time=at()), "world_size": nodes * 8}
    return {**document, "gpus_per_node": 8, "peer_offset": 8, "ranks": ranks, **more}


def culprit(job: str = "llama-953m", rank: int = 13, step: int = 30, **more: Any) -> dict[str, Any]:
    """Accuse one rank by both its comparisons."""
    alarm = {
        "step": step, "check": "compute", "nonfinite": [],
        "mismatched_pairs": [[rank, rank - 8], [rank + 8, rank]], "culprits": [rank],
        "verdicts": [], "suspect_window": [step - 9, step], "last_audit_pass": step - 10,
        "last_weight_check_pass": step - 10,
    }  # fmt: skip
    return {
        "kind": "alarm",
        **envelope(job, time=at(15)),
        "reporter_rank": 0,
        "alarm": alarm,
        **more,
    }


def weights(
    job: str = "llama-953m", rank: int | None = 3, step: int = 40, **more: Any
) -> dict[str, Any]:
    """Name one rank by the majority of weights, or nobody."""
    alarm = {
        "step": step, "check": "weights", "suspects": None if rank is None else [rank],
        "suspect_window": [step - 9, step], "last_audit_pass": step - 10,
        "last_weight_check_pass": step - 10,
    }  # fmt: skip
    return {
        "kind": "alarm",
        **envelope(job, time=at(20)),
        "reporter_rank": 0,
        "alarm": alarm,
        **more,
    }


def passes(
    job: str = "llama-953m", check: str = "ring", last: int = 20, **more: Any
) -> dict[str, Any]:
    """Report passes up to a step."""
    document = {"kind": "passes", **envelope(job, time=at(14)), "check": check}
    return {
        **document, "first_step": 0, "last_step": last, "count": 3, "gpus": 32,
        "step_time_s": 2.0, **more,
    }  # fmt: skip


def checkpoint(step: int, minutes: float, job: str = "llama-953m") -> dict[str, Any]:
    """Save a checkpoint."""
    tags = {"last_audit_pass": step, "last_weight_check_pass": step}
    one = {"step": step, "uri": f"s3://c/{job}/{step}", "saved_at": at(minutes), "committed": True}
    return {
        "kind": "checkpoints", **envelope(job, time=at(minutes)),
        "checkpoints": [{**one, "tags": tags}],
    }  # fmt: skip
