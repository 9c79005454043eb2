"""How do these tests post as a job, read as a program and open pages as a person?"""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from app.context import Context
from app.store import people
from tests.web.conftest import HOST, Browser

TOKEN = "the-token-of-these-pages"
_PATHS = {
    "alarm": "alarms",
    "ranks": "rank-maps",
    "checkpoints": "checkpoints",
    "event": "elastic-events",
    "replays": "replays",
    "check": "passes",
}


class House:
    """The service on a fresh database, with a job that posts."""

    def __init__(self, app: FastAPI, context: Context) -> None:
        self.app = app
        self.context = context
        self.program = TestClient(app, base_url=HOST, raise_server_exceptions=False)
        self.program.headers["Authorization"] = f"Bearer {TOKEN}"

    def post(self, *documents: dict[str, Any]) -> str:
        """Post documents; every one has to be accepted.  Gives the last one's id."""
        said = ""
        for document in documents:
            path = next(path for key, path in _PATHS.items() if key in document)
            answer = self.program.post(f"/api/v1/{path}", content=json.dumps(document))
            assert answer.status_code in (200, 201), answer.text
            said = str(answer.json()["id"])
        return said

    def read(self, path: str) -> Any:
        """Read JSON as a program; it has to be there."""
        answer = self.program.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text, parse_constant=_refuse)

    def ask(self, path: str) -> Response:
        """Ask as a program, whatever comes."""
        return self.program.get(f"/api/v1/{path}")

    def sign_in(self, role: str, name: str = "") -> Browser:
        """Open a browser in which somebody of this role is signed in."""
        now, store = self.context.now(), self.context.store
        name = name or f"{role}-person"
        person, _ = store.write(lambda c: people.ensure(c, name, role, now))
        path = "/sign-in/" + store.write(lambda c: people.make_link(c, person.id, now, 30))
        browser = Browser(self.app)
        answer = browser.http.post(path, data={"csrf": browser.token(path)})
        assert answer.status_code == 303, answer.text
        return browser

    def job_id(self, name: str) -> str:
        """Give the id of a job by its whole name."""
        (one,) = [one for one in self.read("jobs?limit=1000")["items"] if one["job"] == name]
        return str(one["id"])


def _refuse(token: str) -> None:
    raise AssertionError(f"{token} is not strict JSON")
