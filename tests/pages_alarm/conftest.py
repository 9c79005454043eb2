"""How does a test post documents and read the page of an alarm as a person?"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from app.config import Settings
from app.context import Context
from app.main import create_app, make_context
from app.store import people
from tests.web.conftest import Browser, Clock

TOKEN = "the-token-of-the-alarm-pages"
_PATHS = {
    "alarm": "alarms",
    "ranks": "rank-maps",
    "checkpoints": "checkpoints",
    "check": "passes",
    "replays": "replays",
}


class House:
    """The service with a job that posts and a person who reads."""

    def __init__(self, app: FastAPI, context: Context, clock: Clock) -> None:
        self.context = context
        self.clock = clock
        self.program = TestClient(app, base_url="http://witness.test")
        self.program.headers["Authorization"] = f"Bearer {TOKEN}"
        self.person = Browser(app)
        self._sign_in()

    def _sign_in(self) -> None:
        now = self.context.now()
        store = self.context.store
        reader, _ = store.write(lambda c: people.ensure(c, "reader", "viewer", now))
        path = "/sign-in/" + store.write(lambda c: people.make_link(c, reader.id, now, 30))
        answer = self.person.http.post(path, data={"csrf": self.person.token(path)})
        assert answer.status_code == 303

    def post(self, document: dict[str, Any]) -> str:
        """Post one document; give the id that the service answers with."""
        kind = next(path for key, path in _PATHS.items() if key in document)
        answer = self.program.post(f"/api/v1/{kind}", content=json.dumps(document))
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["id"])

    def read(self, alarm_id: str) -> dict[str, Any]:
        """Read an alarm as a program."""
        read: dict[str, Any] = self.get(f"/api/v1/alarms/{alarm_id}").json()
        return read

    def get(self, path: str) -> Response:
        """Ask as a program; the answer has to be there."""
        answer = self.program.get(path)
        assert answer.status_code == 200, answer.text
        return answer

    def page(self, alarm_id: str) -> str:
        """Open the page of an alarm as a person; give its markup."""
        answer = self.person.get(f"/alarms/{alarm_id}")
        assert answer.status_code == 200, answer.text
        return answer.text

    def text(self, alarm_id: str) -> str:
        """Open the page of an alarm; give what a person reads, in one line."""
        return words_of(self.page(alarm_id))


def words_of(markup: str) -> str:
    """Give the text of a page without its markup, in one line."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", markup, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.fixture
def house(migrated_url: str, tmp_path: Path) -> Iterator[House]:
    """Run the service on a fresh database; the test runs on SQLite and on PostgreSQL."""
    yield from _house(migrated_url, tmp_path)


@pytest.fixture
def quick(migrated_sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    """Run the service on SQLite alone: for what the database has no part in."""
    yield from _house(migrated_sqlite_url, tmp_path)


def _house(url: str, folder: Path) -> Iterator[House]:
    settings = Settings(database_url=url, data_dir=folder, admin_token=TOKEN)
    made, clock = make_context(settings), Clock()
    context = Context(made.settings, made.store, made.clusters, clock)
    yield House(create_app(settings, context), context, clock)
    made.store.close()
