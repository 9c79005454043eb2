"""How does a case reach the running service, on both databases?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from app.config import Settings
from app.main import create_app

DATA = Path(__file__).resolve().parent.parent / "data" / "cases"
TOKEN = "the-token-of-the-case-tests"
_PATHS = {
    "alarm": "alarms",
    "ranks": "rank-maps",
    "checkpoints": "checkpoints",
    "first_step": "passes",
}


class Service:
    """The service as a training job and a reading program meet it."""

    def __init__(self, app: FastAPI) -> None:
        """Speak to an application with the administrator's token."""
        self.app = app
        self.http = TestClient(app, base_url="http://witness.test", raise_server_exceptions=False)
        self.http.headers["Authorization"] = f"Bearer {TOKEN}"

    def post_raw(self, path: str, body: bytes | str, **headers: str) -> Response:
        """Send bytes as they are."""
        return self.http.post(f"/api/v1/{path}", content=body, headers=headers)

    def post(self, document: dict[str, Any]) -> dict[str, Any]:
        """Send a document to the address of its kind; it has to be accepted."""
        path = next(path for key, path in _PATHS.items() if key in document)
        answer = self.post_raw(path, json.dumps(document))
        assert answer.status_code in (200, 201), answer.text
        said: dict[str, Any] = answer.json()
        return said

    def get(self, path: str) -> dict[str, Any]:
        """Read JSON; it has to be there, and strict."""
        answer = self.http.get(path if path.startswith("/") else f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = json.loads(answer.text, parse_constant=_refuse)
        return read

    def alarm(self, said: dict[str, Any]) -> dict[str, Any]:
        """Read the alarm that an acceptance names."""
        return self.get(f"alarms/{said['id']}")

    def alarms(self) -> list[dict[str, Any]]:
        """List all alarms."""
        items: list[dict[str, Any]] = self.get("alarms?limit=1000")["items"]
        return items

    def cases(self, **filters: str) -> list[dict[str, Any]]:
        """List all cases."""
        query = "&".join(f"{key}={value}" for key, value in filters.items())
        items: list[dict[str, Any]] = self.get(f"cases?limit=1000&{query}")["items"]
        return items

    def case(self, case_id: str) -> dict[str, Any]:
        """Read one case."""
        return self.get(f"cases/{case_id}")


def _refuse(token: str) -> None:
    raise AssertionError(f"{token} is not strict JSON")


def documents(case: str, *names: str) -> list[dict[str, Any]]:
    """Read the documents of a case's files, in the order of the files and lines."""
    folder = next(DATA.glob(f"{case}-*"))
    found: list[dict[str, Any]] = []
    for name in names:
        text = (folder / name).read_text(encoding="utf-8")
        lines = text.splitlines() if name.endswith(".ndjson") else [text]
        found.extend(json.loads(line) for line in lines if line.strip())
    return found


def raw(case: str, name: str) -> bytes:
    """Read a file of a case as bytes."""
    return (next(DATA.glob(f"{case}-*")) / name).read_bytes()


@pytest.fixture
def service(migrated_url: str, tmp_path: Path) -> Any:
    """Run the service on a fresh database; the test runs on SQLite and on PostgreSQL."""
    settings = Settings(database_url=migrated_url, data_dir=tmp_path, admin_token=TOKEN)
    app = create_app(settings)
    with TestClient(app):  # starts and ends the application's own threads
        yield Service(app)
