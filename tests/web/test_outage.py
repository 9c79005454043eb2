"""What is said while the database is away, and does all go on afterwards?"""

from __future__ import annotations

import random
import sqlite3
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.config import Settings
from app.context import Context
from app.store import database, run_settings, writer
from app.store.store import Store
from app.store.writer import QueueFull
from tests.web.conftest import ADMIN_TOKEN, Browser

API = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


@pytest.fixture
def settings(migrated_sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Give settings for a database that is waited for only briefly."""
    monkeypatch.setattr(database, "SQLITE_BUSY_MS", 50)
    monkeypatch.setattr(writer, "PAUSE_S", 0.001)
    return Settings(database_url=migrated_sqlite_url, data_dir=tmp_path, admin_token=ADMIN_TOKEN)


@contextmanager
def away(context: Context) -> Iterator[None]:
    """Take the database away, as a disk that is not mounted does, and bring it back."""
    path = Path(context.settings.database_url.removeprefix("sqlite:///"))
    context.store.engine.dispose()
    kept = path.with_suffix(".kept")
    path.rename(kept)
    path.mkdir()
    try:
        yield
    finally:
        context.store.engine.dispose()
        path.rmdir()
        kept.rename(path)


@contextmanager
def locked(context: Context) -> Iterator[None]:
    """Hold the write lock, as another program does."""
    other = sqlite3.connect(context.settings.database_url.removeprefix("sqlite:///"))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


def test_pages_and_programs_hear_that_the_database_is_away(
    admin: Browser, context: Context
) -> None:
    with away(context):
        for path in ("/settings", "/audit", "/search?q=node"):
            answer = admin.get(path)
            assert (path, answer.status_code) == (path, 503)
            assert "The database cannot be reached" in answer.text
            assert int(answer.headers["retry-after"]) > 0
            assert "<h1>Service Unavailable</h1>" in answer.text
        answer = admin.get("/api/v1/audit", headers={"Authorization": "Bearer sw_any"})
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "database_unavailable"
        assert int(answer.headers["retry-after"]) > 0
        ready = admin.get("/readyz")
        assert ready.status_code == 503
        assert "unable to open database file" in ready.json()["reason"]
        assert admin.get("/healthz").status_code == 200
        assert admin.get("/metrics").status_code == 200
        assert admin.get("/static/style.css").status_code == 200
    for path in ("/settings", "/readyz"):
        assert admin.get(path).status_code == 200


def test_a_fragment_of_an_open_page_is_told_so(admin: Browser, context: Context) -> None:
    with away(context):
        answer = admin.get("/fragment/docket")
        assert answer.status_code == 503
        assert answer.headers["content-type"].startswith("text/plain")
        assert "database" in answer.text


def test_a_change_that_was_not_written_is_not_confirmed(admin: Browser, context: Context) -> None:
    fields = {"csrf": admin.token(), "reason": "power work"}
    with locked(context):
        answer = admin.http.post("/settings/brake/pull", data=fields)
        assert answer.status_code == 503
        assert "Nothing was changed" in answer.text
        assert "sw_message" not in answer.headers.get("set-cookie", "")
        assert admin.get("/settings").status_code == 200, "reading goes on"
    assert "Off" in admin.get("/settings").text
    assert admin.http.post("/settings/brake/pull", data=fields).status_code == 303


def test_a_token_works_while_its_use_cannot_be_noted(
    sign_in: Callable[..., Browser], context: Context, admin: Browser
) -> None:
    admin.post("/settings/tokens", {"scope": "read"})
    secret = admin.get("/settings").text.split('class="secret">')[1].split("<")[0]
    with locked(context):
        answer = admin.http.get("/api/v1/cases", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200


def test_a_full_queue_asks_to_come_back(
    admin: Browser, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"csrf": admin.token(), "reason": "power work"}

    def full(*_: object) -> None:
        raise QueueFull("20000 documents wait for the database")

    monkeypatch.setattr(context.store, "write", full)
    answer = admin.http.post("/settings/brake/pull", data=fields)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert "20000 documents wait" in answer.text


def test_a_row_that_no_index_can_hold_is_no_outage(migrated_postgres_url: str) -> None:
    store = Store.open(migrated_postgres_url, lambda connection, documents: [])
    chance = random.Random(1)
    noise = "".join(chance.choices(string.ascii_letters, k=20_000))
    try:
        with pytest.raises(sa.exc.OperationalError, match="index row"):
            store.write(
                lambda c: run_settings.keep(c, noise, True, by="test", at=datetime.now(UTC))
            )
        store.write(lambda c: run_settings.keep(c, "short", True, by="t", at=datetime.now(UTC)))
    finally:
        store.close()
