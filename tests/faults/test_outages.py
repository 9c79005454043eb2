"""What is said while the database is locked, full or away, and does it go on afterwards?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from httpx2 import Response
from starlette.testclient import TestClient

from app.config import Settings
from app.main import create_app
from tests.postgres import PostgresCluster

TOKEN = "the-token-of-the-outage-tests"
ALARM = {
    "cluster": "alpine", "namespace": "research", "job": "llama", "attempt": 1,
    "time": "2026-03-02T10:15:00Z", "alarm": {"check": "weights", "step": 40, "suspects": [3]},
}  # fmt: skip


@pytest.fixture
def client(migrated_sqlite_url: str, tmp_path: Path) -> Iterator[TestClient]:
    """Serve on SQLite."""
    yield from serving(migrated_sqlite_url, tmp_path)


def serving(url: str, folder: Path) -> Iterator[TestClient]:
    """Serve on a database."""
    app = create_app(Settings(database_url=url, data_dir=folder, admin_token=TOKEN))
    with TestClient(app, raise_server_exceptions=False) as made:
        made.headers["Authorization"] = f"Bearer {TOKEN}"
        yield made


def post(client: TestClient, **changes: Any) -> Response:
    """Post an alarm."""
    return client.post("/api/v1/alarms", json={**ALARM, **changes})


def refused_for_now(answer: Response) -> None:
    """Hold that an answer says: not now, come back."""
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["code"] == "database_unavailable"


def test_locked(client: TestClient, migrated_sqlite_url: str) -> None:
    """Another program holds the write lock: refused, nothing kept; then it goes on."""
    file = migrated_sqlite_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused_for_now(post(client))
        assert client.get("/healthz").status_code == 200
        assert client.get("/api/v1/alarms").status_code == 200  # reading goes on
        other.execute("ROLLBACK")
    answer = post(client)
    assert (answer.status_code, answer.json().get("duplicate")) == (201, None)


def test_full(client: TestClient) -> None:
    """The disk is full: refused, nothing kept by halves; then it goes on."""
    assert post(client).status_code == 201
    engine = client.app.state.context.store.engine  # type: ignore[attr-defined]

    def limit(pages: int) -> None:
        engine.dispose()
        with engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    limit(1)  # SQLite takes the present size as the least
    padding = {"padding": "x" * 200_000}
    refused_for_now(post(client, job="second", **padding))
    listed = client.get("/api/v1/alarms").json()["items"]
    assert [one["job"] for one in listed] == ["llama"]
    limit(1 << 30)
    assert post(client, job="second", **padding).status_code == 201
    with engine.connect() as connection:
        kept = connection.execute(sa.text("SELECT count(*) FROM documents")).scalar()
    assert kept == 2


def test_damaged(client: TestClient, migrated_sqlite_url: str) -> None:
    """The file is overwritten with something else: 503, never an internal error."""
    assert post(client).status_code == 201
    client.app.state.context.store.engine.dispose()  # type: ignore[attr-defined]
    file = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
    for old in (file, *file.parent.glob(f"{file.name}-*")):
        old.write_bytes(b"this is no database " * 400)
    refused_for_now(post(client, job="second"))
    refused_for_now(client.get("/api/v1/alarms"))
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_away(
    postgres_cluster: PostgresCluster, migrated_postgres_url: str, tmp_path: Path
) -> None:
    """PostgreSQL stops: 503 for posts, pages and readiness; it comes back without a restart."""
    for client in serving(migrated_postgres_url, tmp_path):
        assert post(client).status_code == 201
        assert client.get("/readyz").status_code == 200
        postgres_cluster.stop("fast")
        try:
            refused_for_now(post(client, job="second"))
            refused_for_now(client.get("/api/v1/alarms"))
            ready = client.get("/readyz")
            assert ready.status_code == 503
            assert client.get("/healthz").status_code == 200
        finally:
            postgres_cluster.start()
        assert post(client, job="second").status_code == 201
        assert post(client).json()["duplicate"] is True
        assert client.get("/readyz").status_code == 200
