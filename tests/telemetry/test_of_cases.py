"""Which status stands on a case, of all readings of its GPU or of its newest alarm?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from app.store import telemetry_kept
from app.store.connection import Connection
from tests.actions.service import Service
from witness.rules.observations import Reading, Status

NOW = datetime(2026, 11, 2, tzinfo=UTC)


def test_what_counts_first_stands_on_a_case_however_many_readings_there_are(
    serve: Callable[..., Service],
) -> None:
    read: list[tuple[int, int, Status]] = [
        (1, 10, "not_collected"), (2, 10, "nothing_found"), (3, 10, "risen"), (4, 10, "refused"),
        (1, 11, "refused"), (2, 11, "nothing_found"), (4, 12, "not_collected"),
    ]  # fmt: skip
    store = serve().context.store

    def write(connection: Connection) -> None:
        for alarm, gpu, status in read:
            made = Reading(f"GPU {gpu}", status, "A headline.", (), (), (), (), 0)
            telemetry_kept.write_reading(connection, alarm, gpu, made, whole=True, now=NOW)

    store.write(write)
    cases = [(100, 10, 4), (101, 11, 2), (102, None, 4), (103, 13, 1), (104, None, 9)]
    with store.reading() as connection:
        found = telemetry_kept.of_cases(connection, cases)
        assert telemetry_kept.of_cases(connection, []) == {}
    assert found == {100: "risen", 101: "nothing_found", 102: "refused"}
