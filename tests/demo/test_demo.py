"""Do the recorded runs reach a running server, marked as an example, as often as one likes?"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient
from typer.testing import CliRunner

from app.__main__ import commands
from app.config import Settings
from app.demo import recorded
from app.demo.sending import NotSentError, send
from app.main import create_app

NOW = datetime(2026, 12, 1, tzinfo=UTC)
TOKEN = "the-token-of-the-demo-tests"
KINDS = {"alarm", "rank_map", "passes", "checkpoints"}


@pytest.fixture
def server(migrated_sqlite_url: str, tmp_path: Path, free_port: int) -> Iterator[Settings]:
    """Serve on a loopback port."""
    settings = Settings(
        database_url=migrated_sqlite_url, data_dir=tmp_path, port=free_port, admin_token=TOKEN
    )
    running = uvicorn.Server(
        uvicorn.Config(create_app(settings), port=free_port, log_level="error", lifespan="on")
    )
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        assert thread.is_alive()
    yield settings
    running.should_exit = True
    thread.join(10)


def _run(server: Settings, *more: str) -> tuple[int, str]:
    """Run the command as somebody at the machine of the server does, without a token."""
    environment = {
        "WITNESS_DATABASE_URL": server.database_url,
        "WITNESS_PORT": str(server.port),
        "WITNESS_TOKEN": "",
    }
    done = CliRunner().invoke(commands, ["demo", *more], env=environment)
    return done.exit_code, done.output


def test_every_document_is_marked_and_none_lies_ahead() -> None:
    found = list(recorded.documents(NOW))
    assert {one["kind"] for one in found} == KINDS
    assert all(one["labels"]["example"] == "true" for one in found)
    assert all(one["cluster"] == recorded.CLUSTER for one in found)
    assert all(one["namespace"] == recorded.NAMESPACE for one in found)
    assert len({one["job"] for one in found}) >= 30


def test_the_files_are_small_and_as_recorded() -> None:
    for path in recorded.DATA.glob("*.ndjson"):
        assert path.stat().st_size < 1 << 20
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "labels" not in json.loads(line)


def test_recorded_times_ahead_of_the_clock_move_back_together() -> None:
    early = datetime(2026, 11, 10, 12, tzinfo=UTC)
    days = recorded.days_back(early)
    assert days > 0
    moved, kept = list(recorded.documents(early)), list(recorded.documents(NOW))
    for now, then in zip(moved, kept, strict=True):
        apart = datetime.fromisoformat(then["time"]) - datetime.fromisoformat(now["time"])
        assert (apart.days, apart.seconds) == (days, 0)
        assert datetime.fromisoformat(now["time"]) <= early
        for one in now.get("checkpoints", ()):
            assert datetime.fromisoformat(one["saved_at"]) <= early


def test_the_command_posts_once_and_may_be_repeated(server: Settings) -> None:
    code, said = _run(server)
    assert code == 0, said
    assert "new" in said
    assert "Refused" not in said
    code, again = _run(server)
    assert code == 0, again
    numbers = [line.split()[1] for line in again.splitlines() if line.startswith("  ")]
    assert set(numbers) == {"0"}
    client = TestClient(create_app(server), headers={"Authorization": f"Bearer {TOKEN}"})
    alarms = client.get("/api/v1/alarms?limit=1000").json()["items"]
    assert len(alarms) == len({one["id"] for one in alarms}) > 25
    assert all(one["example"] for one in alarms)
    rules = {one["rule"] for one in alarms}
    assert {"R1", "R3", "W1"} <= rules


def test_the_token_made_for_it_works_no_longer(server: Settings) -> None:
    _run(server)
    listed = CliRunner().invoke(
        commands, ["token", "list"], env={"WITNESS_DATABASE_URL": server.database_url}
    )
    lines = [line for line in listed.output.splitlines() if "recorded example" in line]
    assert len(lines) == 1
    assert "revoked" in lines[0]


def test_no_server_is_said_plainly(free_port: int) -> None:
    done = CliRunner().invoke(
        commands, ["demo", "--token", "x", "--url", f"http://127.0.0.1:{free_port}"]
    )
    assert done.exit_code == 1
    assert "Nothing answers at" in done.output
    assert "make run" in done.output


def test_a_wrong_token_is_said_plainly(server: Settings) -> None:
    code, said = _run(server, "--token", "wrong")
    assert code == 1
    assert "401" in said


def test_only_web_addresses_are_asked() -> None:
    with pytest.raises(NotSentError):
        send("file:///etc", "x", [])
