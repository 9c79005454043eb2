"""Do old samples go, do evidence and readings stay, and does every page say what happened?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from app.actions.telemetry import moved, on_demand, reading, retention
from app.actions.telemetry.on_demand import Range
from app.actions.telemetry.puller import Puller
from app.actions.telemetry.retention import Ages
from app.store import ids, telemetry_kept
from app.store.database import StoreUnavailable
from app.store.tables import cases, telemetry_blocks, telemetry_windows
from app.strict_json import rfc3339
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import ALARM_AT, post_job, rounds
from tests.telemetry.fleet import Fleet, using

Serve = Callable[..., Service]
REMAPPED = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
VALUES = {REMAPPED: lambda field, rank, at: 2.0 if rank == 13 and at > ALARM_AT - 60 else 0.0}
DAY = timedelta(days=1)
USUAL = Ages(400, 30)


def windows(service: Service) -> list[Any]:
    with service.context.store.reading() as connection:
        return list(connection.execute(sa.select(telemetry_windows)))


def blocks(service: Service) -> int:
    with service.context.store.reading() as connection:
        counted = sa.select(sa.func.count()).select_from(telemetry_blocks)
        return int(connection.execute(counted).scalar_one())


def judge(service: Service, status: str, adjudication: str = "open") -> None:
    values = {"status": status, "adjudication": adjudication}
    service.context.store.write(lambda c: c.execute(cases.update().values(values)))


def age(service: Service, days: float, **more: Any) -> None:
    """Let all samples have been pulled so many days ago."""
    then = datetime.now(UTC) - timedelta(days=days)
    values = {"pulled_at": then, **more}
    service.context.store.write(lambda c: c.execute(telemetry_windows.update().values(values)))


def with_alarm(serve: Serve) -> tuple[Service, str]:
    service = using(serve(), Fleet(VALUES))
    alarm = post_job(service)
    assert rounds(service) == 11
    return service, alarm


def test_samples_of_a_closed_case_go_and_what_was_read_stays(serve: Serve) -> None:
    service, alarm = with_alarm(serve)
    judge(service, "closed", "not reproduced")
    before = service.read(f"/alarms/{alarm}")["telemetry"]
    age(service, 401)
    found = retention.purge(service.context, USUAL)
    assert (found.windows, blocks(service)) == (11, 0)
    assert (found.samples, found.size > 0) == (before["samples"], True)
    told = service.read(f"/alarms/{alarm}")["telemetry"]
    assert (told["state"], told["why"], told["samples"]) == ("risen", before["why"], 0)
    assert told["readings"][0]["observations"] == before["readings"][0]["observations"]
    note = told["readings"][0]["notes"][0]
    assert note.startswith(f"The samples were deleted on {datetime.now(UTC):%Y-%m-%d} by retention")
    page = service.person().get(f"/alarms/{alarm}")
    assert note in page
    gpu = ids.derive("gpu", d.gpu(13))
    with service.context.store.reading() as connection:
        assert moved.read_moved(connection, gpu, d.gpu(13)) is not None
    entry = service.audit()["telemetry_purged"]
    assert (entry.actor, entry.details["windows"]) == ("retention", 11)
    # A second run finds nothing and writes nothing.
    commits = service.context.store.writer.commits
    assert retention.purge(service.context, USUAL).windows == 0
    assert service.context.store.writer.commits == commits


@pytest.mark.parametrize(
    ("status", "adjudication"), [("open", "open"), ("closed", "hardware confirmed")]
)
def test_evidence_of_an_open_or_confirmed_case_stays(
    serve: Serve, status: str, adjudication: str
) -> None:
    service, _ = with_alarm(serve)
    judge(service, status, adjudication)
    age(service, 4_000)
    kept = blocks(service)
    assert retention.purge(service.context, USUAL).windows == 0
    assert blocks(service) == kept > 0
    assert "telemetry_purged" not in service.audit()


def test_what_only_people_asked_for_goes_earlier_and_can_be_asked_for_again(serve: Serve) -> None:
    service, _ = with_alarm(serve)
    gpu = ids.derive("gpu", d.gpu(13))
    end = datetime.fromtimestamp(ALARM_AT, UTC) - timedelta(days=3)
    span = Range(end - timedelta(hours=1), end)
    assert on_demand.ask(service.context, gpu, span, "somebody").fresh == 8
    assert on_demand.ask(service.context, gpu, span, "somebody").fresh == 0
    assert rounds(service) == 8
    age(service, 31)
    assert retention.purge(service.context, USUAL).windows == 8
    assert blocks(service) == 11
    when = {"from": rfc3339(span.start), "to": rfc3339(span.end)}
    page = service.person().get(f"/gpus/{ids.show(gpu)}?{urlencode(when)}")
    assert "retention has deleted the samples" in page
    (told,) = service.read(f"/gpus/{d.gpu(13)}/telemetry", **when)["windows"]
    assert told["samples_deleted_at"] is not None
    assert on_demand.ask(service.context, gpu, span, "somebody").fresh == 8
    assert rounds(service) == 8
    assert all(one.samples and one.purged_at is None for one in windows(service))


def test_a_source_that_forgot_deleted_samples_leaves_what_was_read_of_them(serve: Serve) -> None:
    service, alarm = with_alarm(serve)
    judge(service, "closed")
    gpu = ids.derive("gpu", d.gpu(13))
    own = next(one for one in windows(service) if one.gpu_id == gpu)
    age(service, 401)
    retention.purge(service.context, USUAL)
    using(service, Fleet({}))
    on_demand.ask(service.context, gpu, Range(own.start_at, own.end_at), "somebody")
    assert rounds(service) == 8
    with service.context.store.reading() as connection:
        (kept,) = telemetry_kept.readings_of_alarms(connection, [ids.read(alarm)])
        assert moved.read_moved(connection, gpu, d.gpu(13)) is not None
    assert kept.status == "risen"
    assert all(one.purged_at is not None for one in windows(service))


def test_a_reading_is_not_made_anew_from_what_was_deleted(serve: Serve) -> None:
    service, alarm = with_alarm(serve)
    judge(service, "closed")
    age(service, 401)
    retention.purge(service.context, USUAL)
    post_job(service)
    rounds(service)
    reading.read_alarm(service.context, ids.read(alarm))
    with service.context.store.reading() as connection:
        (kept,) = telemetry_kept.readings_of_alarms(connection, [ids.read(alarm)])
    assert kept.status == "risen"


def test_a_purge_between_reading_and_writing_does_not_make_a_reading_of_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, alarm = with_alarm(serve)
    judge(service, "closed")
    age(service, 401)
    real = telemetry_kept.read_packed

    def late(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(telemetry_kept, "read_packed", real)
        assert retention.purge(service.context, USUAL).windows == 11
        return real(*given, **more)

    monkeypatch.setattr(telemetry_kept, "read_packed", late)
    reading.read_alarm(service.context, ids.read(alarm))
    with service.context.store.reading() as connection:
        (kept,) = telemetry_kept.readings_of_alarms(connection, [ids.read(alarm)])
    assert kept.status == "risen"


def test_a_run_that_is_cut_off_has_its_entry_and_the_next_one_goes_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = with_alarm(serve)
    judge(service, "closed")
    age(service, 401)
    monkeypatch.setattr(retention, "AT_ONCE", 4)
    looks = iter([False, True])
    assert retention.purge(service.context, USUAL, is_stopping=lambda: next(looks)).windows == 4
    assert service.audit()["telemetry_purged"].details["windows"] == 11
    write, count = service.context.store.write, itertools.count()

    def fails_later(work: Any) -> Any:
        if next(count):
            raise StoreUnavailable("the database is away")
        return write(work)

    with monkeypatch.context() as patched:
        patched.setattr(service.context.store, "write", fails_later)
        with pytest.raises(StoreUnavailable):
            retention.purge(service.context, USUAL)
    assert blocks(service) == 3
    assert service.audit()["telemetry_purged"].details["windows"] == 7
    assert retention.purge(service.context, USUAL).windows == 3
    assert blocks(service) == 0


def test_nothing_goes_while_it_is_pulled_and_nothing_ever_where_days_are_0(serve: Serve) -> None:
    service, _ = with_alarm(serve)
    judge(service, "closed")
    age(service, 4_000, state="claimed")
    assert retention.purge(service.context, USUAL).windows == 0
    age(service, 4_000, state="done")
    assert retention.purge(service.context, Ages(0, 0)).windows == 0
    assert retention.purge(service.context, Ages(0, 30)).windows == 0
    assert retention.purge(service.context, Ages(400, 0)).windows == 11


def test_the_puller_deletes_by_the_settings(serve: Serve) -> None:
    service, _ = with_alarm(serve)
    judge(service, "closed")
    age(service, 21)
    settings = service.context.settings.model_copy(update={"telemetry_days": 20})
    puller = Puller(replace(service.context, settings=settings))
    puller._sweep()
    assert blocks(service) == 0
    assert {one.purged_at is None for one in windows(service)} == {False}
