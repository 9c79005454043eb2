"""How does a test serve the whole application over HTTP and act in it as people and programs?"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI

from app.cluster.registry import Clusters
from app.context import Context
from app.main import create_app
from app.store import audit, audit_reading, people

ADMIN_TOKEN = "the-administrator-token-of-the-tests"


class Service:
    """The application, served by a thread of this process."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.app: FastAPI = create_app(context.settings, context)
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_config=None, access_log=False))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, daemon=True
        )
        self._thread.start()
        self._listener = listener
        self._people: list[Person] = []
        until(lambda: self._server.started, "the service starts")

    def close(self) -> None:
        """Stop serving and let go of everything."""
        for person in self._people:
            person.http.close()
        self._server.should_exit = True
        self._thread.join(20)
        self._listener.close()
        if isinstance(self.context.clusters, Clusters):
            self.context.clusters.close()
        self.context.store.close()

    def post(self, *documents: dict[str, Any]) -> list[dict[str, Any]]:
        """Post documents as one batch; every line must be taken."""
        return post(self.url, *documents)

    def read(self, path: str, **query: str) -> Any:
        """Read JSON as the administrator's program."""
        return read(self.url, path, **query)

    def proposals(self, action: str = "cordon", **query: str) -> list[dict[str, Any]]:
        """List the proposals of one action."""
        items = self.read("/proposals", **query)["items"]
        return [one for one in items if one["action"] == action]

    def proposal(self, action: str = "cordon") -> dict[str, Any]:
        """Give the only proposal of an action."""
        (one,) = self.proposals(action)
        found: dict[str, Any] = one
        return found

    def audit(self) -> dict[str, audit.Entry]:
        """Give the newest audit entry of each verb."""
        with self.context.store.reading() as connection:
            entries = audit_reading.page(connection, audit_reading.Filter(), before=None, limit=200)
        return {entry.verb: entry for entry in reversed(entries)}

    def decide(self, proposal: dict[str, Any], verdict: str = "approve", **body: Any) -> Any:
        """Decide as the administrator's program; give the answer, once the action has ended.

        A loaded machine may need longer than the seconds that the answer itself waits.
        """
        given = {"evidence_version": proposal["evidence_version"], **body}
        path = f"{self.url}/api/v1/proposals/{proposal['id']}/{verdict}"
        answer = httpx2.post(path, json=given, headers=BEARER, timeout=30)
        if answer.status_code != 200:
            return answer
        self.settled(proposal)
        return httpx2.get(path.rsplit("/", 1)[0], headers=BEARER, timeout=30)

    def settled(self, proposal: dict[str, Any]) -> None:
        """Wait until an action is neither waiting for a worker nor under way."""
        address = f"/proposals/{proposal['id']}"
        until(
            lambda: self.read(address)["status"] not in ("approved", "executing", "accepted"),
            "the action ends",
            30,
        )

    def person(self, role: str = "operator", name: str = "") -> Person:
        """Sign somebody in."""
        name, now = name or f"{role}-person", self.context.now()
        known, _ = self.context.store.write(lambda c: people.ensure(c, name, role, now))
        secret = self.context.store.write(lambda c: people.make_link(c, known.id, now, 30))
        self._people.append(Person(self.url, f"/sign-in/{secret}"))
        return self._people[-1]


BEARER = {"authorization": f"Bearer {ADMIN_TOKEN}"}


def post(url: str, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    """Post documents as one batch; every line must be taken."""
    body = "\n".join(json.dumps(one) for one in documents)
    headers = {**BEARER, "content-type": "application/x-ndjson"}
    answer = httpx2.post(f"{url}/api/v1/events", content=body, headers=headers, timeout=30)
    results: list[dict[str, Any]] = answer.json()["results"]
    assert all(one["status"] in (200, 201) for one in results), results
    return results


def read(url: str, path: str, **query: str) -> Any:
    """Read JSON as the administrator's program."""
    answer = httpx2.get(f"{url}/api/v1{path}", params=query, headers=BEARER, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


class Person:
    """Somebody signed in with a browser that follows where a POST leads."""

    def __init__(self, url: str, sign_in: str) -> None:
        self.http = httpx2.Client(base_url=url, timeout=30, headers={"origin": url})
        answer = self.http.post(sign_in, data={"csrf": self.token(sign_in)})
        assert answer.status_code == 303, answer.text

    def get(self, path: str) -> str:
        """Open a page; it must be there."""
        answer = self.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:400]}"
        return answer.text

    def token(self, page: str) -> str:
        """Read the form token out of a page."""
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.http.get(page).text)
        assert found, f"no form on {page}"
        return found.group(1)

    def send(self, path: str, page: str = "/settings", **fields: Any) -> httpx2.Response:
        """Send a form with the token of a page, and do not follow."""
        return self.http.post(path, data={"csrf": self.token(page), **fields})

    def press(self, path: str, page: str = "/settings", **fields: Any) -> str:
        """Send a form as a browser does, and give the page that it leads to."""
        answer = self.send(path, page, **fields)
        assert answer.status_code == 303, f"{path}: {answer.status_code} {answer.text[:400]}"
        return self.get(answer.headers["location"])

    def form(self, page: str) -> dict[str, str]:
        """Read the hidden fields of the forms on a page."""
        text = self.get(page)
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def until(holds: Callable[[], object], what: str, seconds: float = 15.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(0.02)
