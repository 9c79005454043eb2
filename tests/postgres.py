"""How do tests get a PostgreSQL of their own, on any machine, as root or not?"""

from __future__ import annotations

import itertools
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import make_url

MISSING = (
    "PostgreSQL's programs (initdb, pg_ctl) are not on this machine: install the package "
    "`postgresql` (Debian, Ubuntu) or `postgresql-server` (Fedora); `make test` run as root does."
)
# Speed of a cluster that lives for one test run: what a power cut would lose does not matter.
FAST = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"
# The server's own defaults: a commit is on the disk before it is acknowledged.
DURABLE = "-c shared_buffers=128MB"


class PostgresMissing(RuntimeError):
    """No PostgreSQL is installed; the text says what to install."""


def binaries() -> Path:
    """Find the folder with initdb and pg_ctl, the newest when there are several."""
    on_path = shutil.which("initdb")
    if on_path:
        folder = Path(on_path).resolve().parent
        if (folder / "pg_ctl").exists():
            return folder
    found = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not found:
        raise PostgresMissing(MISSING)
    return max(found, key=lambda p: [int(n) for n in re.findall(r"\d+", p.parent.name)])


class PostgresCluster:
    """A private cluster in a temporary folder, reached through a Unix socket in it."""

    def __init__(self, options: str = FAST) -> None:
        self.bin = binaries()
        self._options = options
        # Not pytest's own folder: the postgres user must be able to walk into it, and a
        # socket's path may not be longer than about a hundred bytes.
        self.home = Path(tempfile.mkdtemp(prefix="witness-pg-"))
        self.numbers = itertools.count(1)
        self._prefix: list[str] = []
        if os.geteuid() == 0:
            self._leave_root()
        self._run(
            "initdb", "-D", f"{self.home}/data", "-A", "trust", "-U", "postgres",
            "--locale=C.UTF-8", "-E", "UTF8", "--no-sync",
        )  # fmt: skip
        self.start()

    def _leave_root(self) -> None:
        """Make every program run as `postgres`: it refuses to run as root."""
        try:
            user = pwd.getpwnam("postgres")
        except KeyError as error:
            raise PostgresMissing(MISSING) from error
        os.chown(self.home, user.pw_uid, user.pw_gid)
        self._prefix = [
            "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups",
        ]  # fmt: skip

    def _run(self, program: str, *arguments: str) -> str:
        command = [*self._prefix, str(self.bin / program), *arguments]
        # pg_ctl leaves a server behind that would keep a pipe open, so the output is a file.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self.home, timeout=60, check=False,
            )  # fmt: skip
            output.seek(0)
            text = output.read()
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed with {done.returncode}:\n{text}{self.log()}")
        return text

    def log(self) -> str:
        """Read the server's log, for the message of a failed start."""
        path = self.home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"{self._options} -c listen_addresses='' -c unix_socket_directories='{self.home}'"
        self._run(
            "pg_ctl", "-D", f"{self.home}/data", "-w", "-t", "30", "-l", f"{self.home}/log",
            "-o", options, "start",
        )  # fmt: skip

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server at once; its data stays, so it can be started again.

        "immediate" is a crash, in which a cluster without flushes forgets its last commits;
        "fast" ends sessions and keeps everything.
        """
        self._run("pg_ctl", "-D", f"{self.home}/data", "-w", "-m", mode, "stop")

    def sql(self, statement: str) -> str:
        """Run one statement as the superuser, outside any transaction."""
        return self._run(
            "psql", "-h", str(self.home), "-U", "postgres", "-d", "postgres", "-X", "-q", "-A",
            "-t", "-v", "ON_ERROR_STOP=1", "-c", statement,
        )  # fmt: skip

    def url(self, database: str) -> str:
        """Give the SQLAlchemy address of one database."""
        return f"postgresql+psycopg://postgres@/{database}?host={quote(str(self.home), safe='')}"

    def create(self, template: str = "template0") -> str:
        """Make a fresh database as a copy of another one and give its address."""
        name = f"t{next(self.numbers)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self.sql(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

    def close(self) -> None:
        """Stop the server and remove everything."""
        self.stop()
        shutil.rmtree(self.home)
