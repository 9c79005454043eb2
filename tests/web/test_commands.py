"""Do the commands on the server do what they print, and does `serve` run what it says?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from app.__main__ import commands
from app.commands.serve import admin_link
from app.store import audit, people, tokens
from app.store.ids import show
from app.store.store import Store


def environment(url: str, folder: Path) -> dict[str, str]:
    """Give the environment of a command: ours without its settings, and the database."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("WITNESS_")}
    return {**plain, "WITNESS_DATABASE_URL": url, "WITNESS_DATA_DIR": str(folder)}


def run(url: str, folder: Path, *words: str, fails: bool = False) -> str:
    """Run one command in this process and give what it printed."""
    done = CliRunner().invoke(commands, words, env=environment(url, folder))
    assert (done.exit_code != 0) == fails, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """Open the database beside the commands."""
    store = Store.open(url, lambda _c, _d: [])
    yield store
    store.close()


def test_a_token_is_made_listed_and_revoked(sqlite_url: str, tmp_path: Path) -> None:
    # The very first command meets a database that does not exist yet.
    where = ("--cluster", "alpine", "--namespace", "research")
    secret = run(sqlite_url, tmp_path, "token", "create", *where).strip()
    assert re.fullmatch(r"sw_[\w-]{43}", secret)
    with opened(sqlite_url) as store, store.reading() as connection:
        token = tokens.by_hash(connection, tokens.hashed(secret))
    assert token is not None
    assert (token.cluster, token.namespace, token.scope) == ("alpine", "research", "write")
    listed = run(sqlite_url, tmp_path, "token", "list")
    assert show(token.id) in listed
    assert secret not in listed
    run(sqlite_url, tmp_path, "token", "revoke", show(token.id))
    assert "revoked" in run(sqlite_url, tmp_path, "token", "list")
    run(sqlite_url, tmp_path, "token", "revoke", show(token.id), fails=True)
    assert "2 entries" in run(sqlite_url, tmp_path, "audit", "verify")


def test_mistakes_are_said_in_a_sentence(sqlite_url: str, tmp_path: Path) -> None:
    for words, said in (
        (("token", "create", "--scope", "all"), "scope"),
        (("token", "create", "--namespace", "research"), "cluster"),
        (("link", "--name", "ana", "--role", "emperor"), "emperor"),
        (("token", "revoke", "nonsense"), "13 letters"),
    ):
        assert said in run(sqlite_url, tmp_path, *words, fails=True)
    missing = "postgresql://nobody@127.0.0.1:1/witness"
    said = run(missing, tmp_path, "token", "list", fails=True)
    assert said.startswith("The database cannot be used:")


def test_a_broken_chain_fails_the_check(sqlite_url: str, tmp_path: Path) -> None:
    run(sqlite_url, tmp_path, "link", "--name", "ana", "--role", "operator")
    with opened(sqlite_url) as store:
        store.write(lambda c: c.exec_driver_sql("UPDATE audit_entries SET actor = 'eve'"))
        with store.reading() as connection:
            bad = audit.verify(connection).first_bad
    said = run(sqlite_url, tmp_path, "audit", "verify", fails=True)
    assert f"breaks at entry {bad}" in said


@contextmanager
def serving(url: str, folder: Path) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """Run `serve` on a free port; gives the address, the path of the link, the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--port", "0"],
        env=environment(url, folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    printed = ""
    try:
        for line in process.stdout:
            printed += line
            if found := re.search(r"(http://127\.0\.0\.1:\d+)(/sign-in/\S+)", line):
                yield found.group(1), found.group(2), process
                break
        else:
            pytest.fail(printed)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_for(address: str) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if httpx2.get(f"{address}/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.05)
    pytest.fail("the server did not answer")


def test_serve_prints_a_link_that_signs_in_and_stops_cleanly(
    sqlite_url: str, tmp_path: Path
) -> None:
    with serving(sqlite_url, tmp_path) as (address, link, process):
        wait_for(address)
        with httpx2.Client(base_url=address) as browser:
            page = browser.get(link)
            token = re.findall(r'name="csrf" value="(\w+)"', page.text)[0]
            assert browser.post(link, data={"csrf": token}).status_code == 303
            assert "admin, admin" in re.sub(r"<[^>]+>", "", browser.get("/settings").text)
        port = address.rsplit(":", 1)[1]
        said = run(sqlite_url, tmp_path, "serve", "--port", port, fails=True)
        assert f"Cannot listen on 127.0.0.1 port {port}" in said
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[0]
        assert process.returncode in (0, -signal.SIGTERM)
        # The secret of a link belongs into no log.
        assert link.rsplit("/", 1)[1] not in rest


def test_every_start_makes_another_link_for_the_same_administrator(
    migrated_sqlite_url: str,
) -> None:
    with opened(migrated_sqlite_url) as store:
        first, second = (store.write(lambda c: admin_link(c, 30)) for _ in range(2))
        assert first
        assert second
        assert first != second
        with store.reading() as connection:
            (admin,) = people.everybody(connection)
        store.write(lambda c: people.ensure(c, "ana", "admin", admin.created_at))
        store.write(lambda c: people.set_disabled(c, admin.id, True))
        assert store.write(lambda c: admin_link(c, 30)) is None


def test_serve_says_that_the_database_is_away(tmp_path: Path) -> None:
    said = run("postgresql://nobody@127.0.0.1:1/witness", tmp_path, "serve", fails=True)
    assert "The database cannot be brought up to date" in said
