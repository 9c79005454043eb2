"""Does an export hold every kept sample, once, with where it is from, in little memory?"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from app.__main__ import commands
from app.actions.telemetry import exporting, retention
from app.actions.telemetry.retention import Ages
from app.store import telemetry_export, tokens
from app.store.database import StoreUnavailable
from app.store.tables import cases, telemetry_blocks, telemetry_windows
from app.store.telemetry_export import Chosen
from app.strict_json import rfc3339
from tests.actions.service import BEARER, Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import post_job, rounds
from tests.telemetry.fleet import Fleet, using

Serve = Callable[..., Service]
TEMP, SBE = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
VALUES = {
    TEMP: lambda field, rank, at: 60.5 + (rank + int(at / 30)) % 3,
    SBE: lambda field, rank, at: float("inf") if int(at / 30) % 50 == 0 else 3.0,
}


@pytest.fixture
def service(serve: Serve) -> Service:
    """Keep the windows of two alarms: eleven and eleven, of other times."""
    found = using(serve(), Fleet(VALUES))
    post_job(found)
    post_job(found, {**d.CULPRIT, "step": 31}, clock="18:00:12")
    assert rounds(found) == 22
    return found


def fetch(service: Service, secret: str = "", **query: str) -> httpx2.Response:
    headers = {"authorization": f"Bearer {secret}"} if secret else BEARER
    address = f"{service.url}/api/v1/telemetry/export"
    return httpx2.get(address, params=query, headers=headers, timeout=30)


def lines(service: Service, **query: str) -> list[dict[str, Any]]:
    answer = fetch(service, **query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in found if one["kind"] == kind]


def number(value: Any) -> float:
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else float(value)


def test_an_export_holds_every_sample_with_its_hash(service: Service) -> None:
    found = lines(service)
    windows, series = of_kind(found, "window"), of_kind(found, "series")
    assert [len(windows), len(series)] == [22, 44]
    assert [one["cursor"] for one in windows] == sorted(one["cursor"] for one in windows)
    (end,) = of_kind(found, "end")
    with service.context.store.reading() as connection:
        kept = connection.execute(sa.select(sa.func.sum(telemetry_blocks.c.count))).scalar_one()
    assert (end["windows"], end["series"], end["samples"]) == (22, 44, int(kept))
    for one in series:
        times, values = map(number, one["times"]), map(number, one["values"])
        digest = hashlib.sha256(struct.pack("<I", len(one["times"])))
        for column in (times, values):
            digest.update(struct.pack(f"<{len(one['times'])}d", *column))
        assert digest.hexdigest() == one["sha256"]
    assert {(*one["named"], one["field_id"]) for one in series} == {(TEMP, 150), (SBE, 310)}
    assert windows[0]["source"] == "a fleet"


def test_a_csv_is_a_line_a_sample(service: Service) -> None:
    answer = fetch(service, format="csv", gpu=d.gpu(13).upper())
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert tuple(rows[0]) == exporting.COLUMNS
    told = lines(service, gpu=d.gpu(13))
    assert len(rows) == of_kind(told, "end")[0]["samples"] > 500
    assert {one["gpu_uuid"] for one in rows} == {d.gpu(13)}
    assert {one["value"] for one in rows if one["field"] == SBE} == {"3.0", "Infinity"}
    assert rows[0]["time"] == rfc3339(
        datetime.fromtimestamp(of_kind(told, "series")[0]["times"][0], UTC)
    )


def test_filters_choose_and_a_cursor_goes_on(service: Service) -> None:
    everything = of_kind(lines(service), "window")
    alarms = [one["id"] for one in service.read("/alarms")["items"]]
    by_alarm = [of_kind(lines(service, alarm=one), "window") for one in alarms]
    assert [len(one) for one in by_alarm] == [11, 11]
    (case,) = service.read("/cases")["items"]
    assert of_kind(lines(service, case=case["id"]), "window") == everything
    assert of_kind(lines(service, cluster="alpine"), "window") == everything
    assert lines(service, cluster="elsewhere") == [
        {"kind": "end", "windows": 0, "series": 0, "samples": 0, "damaged": 0}
    ]
    assert [everything[0]["to"], everything[-1]["to"]] == [
        "2026-11-02T14:15:00Z", "2026-11-02T18:15:00Z",
    ]  # fmt: skip
    late = {"from": everything[0]["to"]}
    assert of_kind(lines(service, **late), "window") == everything[11:]
    early = {"to": everything[-1]["from"]}
    assert of_kind(lines(service, **early), "window") == everything[:11]
    rest = of_kind(lines(service, after=everything[4]["cursor"]), "window")
    assert rest == everything[5:]
    assert of_kind(lines(service, after=everything[-1]["cursor"]), "window") == []


WRONG: tuple[tuple[dict[str, str], str | None, int], ...] = (
    ({"format": "xml"}, "format", 400),
    ({"after": "nothing"}, "after", 400),
    ({"limit": "3"}, "limit", 400),
    ({"from": "yesterday"}, "from", 400),
    ({"cluster": "a\x00b"}, "cluster", 400),
    ({"alarm": "nothing"}, None, 404),
    ({"case": "0" * 13}, None, 404),
    ({"gpu": "GPU-ffffffff-0000-0000-0000-000000000000"}, None, 404),
)


def test_what_cannot_be_asked_is_said_before_the_first_byte(service: Service) -> None:
    for query, field, status in WRONG:
        answer = fetch(service, **query)
        assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


def token(service: Service, cluster: str | None, namespace: str | None) -> str:
    now = service.context.now()

    def make(connection: Any) -> str:
        return tokens.create(
            connection, name="a", cluster=cluster, namespace=namespace, scope="read", by="b", at=now
        )[1]

    return service.context.store.write(make)


def test_a_token_takes_away_only_what_it_may_see(service: Service) -> None:
    alarm = service.read("/alarms")["items"][0]["id"]
    own, other = token(service, "alpine", None), token(service, "elsewhere", None)
    assert len(of_kind(_lines(fetch(service, own)), "window")) == 22
    assert len(of_kind(_lines(fetch(service, other)), "window")) == 0
    assert fetch(service, other, cluster="alpine").status_code == 403
    assert fetch(service, other, alarm=alarm).status_code == 404
    narrow = token(service, "alpine", "research")
    assert fetch(service, narrow).status_code == 403
    assert len(of_kind(_lines(fetch(service, narrow, alarm=alarm)), "window")) == 11
    assert fetch(service, token(service, "alpine", "else"), alarm=alarm).status_code == 404
    assert httpx2.get(f"{service.url}/api/v1/telemetry/export").status_code == 401


def _lines(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_deleted_samples_and_damaged_ones_are_named(service: Service) -> None:
    def spoil(connection: Any) -> None:
        connection.execute(cases.update().values(status="closed"))
        old = datetime.now(UTC) - timedelta(days=500)
        first = sa.select(sa.func.min(telemetry_windows.c.start_at)).scalar_subquery()
        connection.execute(
            telemetry_windows.update()
            .where(telemetry_windows.c.start_at == first)
            .values(pulled_at=old)
        )
        connection.execute(
            telemetry_blocks.update().where(telemetry_blocks.c.field_id == 150).values(codec="new")
        )

    service.context.store.write(spoil)
    assert retention.purge(service.context, Ages(400, 30)).windows == 11
    found = lines(service)
    gone, rest = of_kind(found, "window")[:11], of_kind(found, "window")[11:]
    assert all(one["samples_deleted_at"] and not one["series"] for one in gone)
    assert {one["damaged"][0] for one in rest} == {
        "Field 150 [] cannot be read: the codec 'new' is not known here."
    }
    (end,) = of_kind(found, "end")
    assert (end["windows"], end["series"], end["damaged"]) == (22, 11, 11)


def test_one_window_is_held_at_a_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = telemetry_export.whole_window, []

    def counted(*given: Any) -> Any:
        seen.append(given[1])
        return read(*given)

    monkeypatch.setattr(exporting, "whole_window", counted)
    monkeypatch.setattr(exporting, "AT_ONCE", 3)
    lines_: Iterator[str] = exporting.write_out(service.context.store, Chosen(), "ndjson")
    first = [json.loads(next(lines_)) for _ in range(4)]
    assert [one["kind"] for one in first] == ["window", "series", "series", "window"]
    assert len(seen) == 2
    assert len(list(lines_)) == 22 + 44 + 1 - 4
    assert len(seen) == len(set(seen)) == 22


def test_an_export_that_is_cut_off_has_no_end(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, left = telemetry_export.whole_window, [3]

    def fails(*given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise StoreUnavailable("the database is away")
        return read(*given)

    monkeypatch.setattr(exporting, "whole_window", fails)
    found: list[str] = []
    with pytest.raises(StoreUnavailable):
        found.extend(exporting.write_out(service.context.store, Chosen(), "ndjson"))
    assert '"kind":"end"' not in "".join(found)
    # The same behind the first piece of an answer breaks the answer off.
    left[0] = 15
    with pytest.raises(httpx2.HTTPError):
        fetch(service)


def test_the_command_line_does_the_same(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITNESS_DATABASE_URL", service.context.settings.database_url)
    run = CliRunner().invoke
    result = run(commands, ["telemetry", "export", "--gpu", d.gpu(13), "--from", "2026-11-02"])
    assert result.exit_code == 0, result.output
    assert result.stdout == fetch(service, gpu=d.gpu(13)).text
    assert run(commands, ["telemetry", "export", "--gpu", "GPU-ffff"]).exit_code == 1
    assert run(commands, ["telemetry", "export", "--alarm", "x"]).exit_code == 2
    old = datetime.now(UTC) - timedelta(days=5)
    service.context.store.write(
        lambda c: (
            c.execute(cases.update().values(status="closed")),
            c.execute(telemetry_windows.update().values(pulled_at=old)),
        )
    )
    kept = run(commands, ["telemetry", "purge"])
    assert (kept.exit_code, kept.stdout) == (0, "Deleted 0 samples of 0 windows, 0 bytes.\n")
    gone = run(commands, ["telemetry", "purge", "--older-than", "4"])
    assert "of 22 windows" in gone.stdout
    assert service.audit()["telemetry_purged"].actor.endswith("on the server")
