"""How does a test get the running application and a browser that is signed in?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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
from app.store.store import Store

HOST = "http://witness.test"
ADMIN_TOKEN = "the-administrator-token-of-the-tests"


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        """Read the clock."""
        return self.now

    def forward(self, **span: float) -> None:
        """Move the clock."""
        self.now += timedelta(**span)


class Browser:
    """A browser: keeps cookies, fills in the form token of the page that holds the form."""

    def __init__(self, app: FastAPI) -> None:
        """Open a browser without cookies."""
        self.http = TestClient(
            app, base_url=HOST, follow_redirects=False, raise_server_exceptions=False
        )

    def get(self, path: str, **more: Any) -> Response:
        """Open a page."""
        return self.http.get(path, **more)

    def token(self, page: str = "/settings") -> str:
        """Read the form token out of a page."""
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.get(page).text)
        assert found, f"no form on {page}"
        return found.group(1)

    def post(self, path: str, fields: dict[str, str] | None = None, **more: Any) -> Response:
        """Send a form as a browser does."""
        data = {"csrf": self.token(), **(fields or {})}
        headers = {"origin": HOST, "sec-fetch-site": "same-origin", **more.pop("headers", {})}
        return self.http.post(path, data=data, headers=headers, **more)


@pytest.fixture
def clock() -> Clock:
    """Give a clock that the test moves."""
    return Clock()


@pytest.fixture
def settings(migrated_sqlite_url: str, tmp_path: Path) -> Settings:
    """Give settings with a fresh database."""
    return Settings(
        database_url=migrated_sqlite_url,
        data_dir=tmp_path,
        admin_token=ADMIN_TOKEN,
        clusters={"alpine": {"kubeconfig": str(tmp_path / "no-such-kubeconfig")}},
    )


@pytest.fixture
def context(settings: Settings, clock: Clock) -> Iterator[Context]:
    """Give an open context with the test's clock."""
    made = make_context(settings)
    yield Context(made.settings, made.store, made.clusters, clock)
    made.store.close()


@pytest.fixture
def store(context: Context) -> Store:
    """Give the store of the application."""
    return context.store


@pytest.fixture
def app(settings: Settings, context: Context) -> FastAPI:
    """Give the application."""
    return create_app(settings, context)


@pytest.fixture
def stranger(app: FastAPI) -> Browser:
    """Give a browser that is not signed in."""
    return Browser(app)


@pytest.fixture
def sign_in(app: FastAPI, context: Context) -> Callable[..., Browser]:
    """Give a function that signs somebody in on a new browser."""

    def signed_in(role: str = "admin", name: str = "") -> Browser:
        now = context.now()
        name = name or f"{role}-person"
        person, _ = context.store.write(lambda c: people.ensure(c, name, role, now))
        secret = context.store.write(lambda c: people.make_link(c, person.id, now, 30))
        browser = Browser(app)
        path = f"/sign-in/{secret}"
        answer = browser.http.post(path, data={"csrf": browser.token(path)})
        assert answer.status_code == 303, answer.text
        return browser

    return signed_in


@pytest.fixture
def admin(sign_in: Callable[..., Browser]) -> Browser:
    """Give a browser with the administrator signed in."""
    return sign_in("admin", "admin")


@pytest.fixture
def link(context: Context) -> str:
    """Give the path of a fresh link for an operator."""
    now = context.now()
    person, _ = context.store.write(lambda c: people.ensure(c, "T. Reyes", "operator", now))
    return "/sign-in/" + context.store.write(lambda c: people.make_link(c, person.id, now, 30))
