"""Does `make migrate` do what it says, twice, and say why it cannot?"""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from app.__main__ import commands


def test_a_fresh_database_gets_its_tables_and_a_second_time_changes_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WITNESS_DATABASE_URL", database_url)
    seen = []
    for _ in range(2):
        result = CliRunner().invoke(commands, ["migrate"])
        assert result.exit_code == 0, result.output
        engine = sa.create_engine(database_url)
        seen.append(sorted(sa.inspect(engine).get_table_names()))
        engine.dispose()
    assert "alembic_version" in seen[0]
    assert seen[0] == seen[1]


def test_a_database_that_is_away_is_named_in_one_line(
    free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WITNESS_DATABASE_URL", f"postgresql://witness@127.0.0.1:{free_port}/w")
    result = CliRunner().invoke(commands, ["migrate"])
    assert result.exit_code == 1
    assert "cannot be brought up to date" in result.stderr
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1
