"""Does the telemetry of an alarm's GPUs come from a real Prometheus into a reading that is kept?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from app.actions.telemetry import pulling
from app.actions.telemetry.puller import Puller
from app.store import ids, telemetry_claims, telemetry_kept, telemetry_queue
from app.store.connection import Connection
from app.store.tables import telemetry_asks, telemetry_blocks, telemetry_windows
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.prometheus import Prometheus
from tests.telemetry.conftest import every, labels, post_job, rounds

SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
TEMP = "DCGM_FI_DEV_GPU_TEMP"
REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
NODE = range(8, 16)


def quiet(prometheus: Prometheus, rising: dict[int, str] | None = None) -> None:
    """Store two hours of a node's GPUs; `rising` names a counter that rises by rank."""
    prometheus.write(
        [
            (labels(field, rank), every(_value(field, rank, (rising or {}).get(rank))))
            for rank in (*NODE, 5, 21, 29)
            for field in (TEMP, REPLAYS, SBE)
        ]
    )


def _value(field: str, rank: int, rising: str | None) -> Callable[[float], float]:
    def value(since: float) -> float:
        if field == TEMP:
            return 60.0 + (rank + int(since // 15)) % 3
        return 12.0 if field == rising and since > -20 else 3.0

    return value


def kept(service: Service, alarm_id: str) -> list[telemetry_kept.Kept]:
    with service.context.store.reading() as connection:
        return telemetry_kept.readings_of_alarms(connection, [ids.read(alarm_id)])


def windows(service: Service) -> list[Any]:
    with service.context.store.reading() as connection:
        return list(connection.execute(sa.select(telemetry_windows)))


def change(service: Service, **values: Any) -> None:
    def write(connection: Connection) -> None:
        connection.execute(telemetry_windows.update().values(values))

    service.context.store.write(write)


def blocks(service: Service) -> int:
    with service.context.store.reading() as connection:
        counted = connection.execute(sa.select(sa.func.count()).select_from(telemetry_blocks))
        return int(counted.scalar_one())


def test_a_counter_that_rose_is_read_and_kept(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus, {13: SBE})
    service = serve({"url": prometheus.url, "level": "advanced", "interval_s": 15})
    alarm = post_job(service)
    assert rounds(service) == 11  # the suspect, seven beside it, three of the same index
    (reading,) = kept(service, alarm)
    assert (reading.status, reading.whole) == ("risen", True)
    assert reading.gpu_id == ids.derive("gpu", d.gpu(13))
    (risen,) = [one for one in reading.reading["observations"] if one["risen"]]
    assert (risen["field_id"], risen["when"], risen["amount"]) == (310, "window", 9.0)
    with service.context.store.reading() as connection:
        assert set(connection.execute(sa.select(telemetry_asks.c.state)).scalars()) == {"read"}


def test_what_was_stored_comes_back_to_the_bit(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": prometheus.url})
    post_job(service)
    rounds(service)
    (own,) = [one for one in windows(service) if one.gpu_uuid == d.gpu(13)]
    with service.context.store.reading() as connection:
        series = telemetry_kept.read_series(connection, {own.id: own.gpu_uuid}, [150])
        samples, size = telemetry_kept.sizes(connection, [one.id for one in windows(service)])
    inside = [
        one for one in every(_value(TEMP, 13, None))
        if own.start_at.timestamp() <= one[0] <= own.end_at.timestamp()
    ]  # fmt: skip
    assert list(zip(series[0].times, series[0].values, strict=True)) == inside
    assert samples == 11 * 3 * len(inside)
    assert size / samples < 2.0
    assert series[0].seen.hosts == (d.node(13),)


def test_nothing_moved_is_nothing_found_and_never_more(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": prometheus.url, "level": "basic"})
    (reading,) = [kept(service, alarm)[0] for alarm in [post_job(service)] if rounds(service)]
    assert reading.status == "nothing_found"
    assert "clears" in reading.headline or "no" in reading.headline.lower()
    assert reading.reading["missing"]


def test_no_source_is_not_collected_until_one_is_configured(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve()
    alarm = post_job(service)
    rounds(service)
    (reading,) = kept(service, alarm)
    assert reading.status == "not_collected"
    assert reading.reading["notes"][0] == "No source of metrics is configured for this cluster."
    assert {one.state for one in windows(service)} == {"no_source"}
    quiet(prometheus, {13: SBE})
    later = serve({"url": prometheus.url})
    assert Puller(later.context).take_up_again() == 11
    assert rounds(later) == 11
    assert kept(later, alarm)[0].status == "risen"


def test_a_refusal_says_why_and_can_be_asked_again(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve({"url": f"{prometheus.url}/wrong"})
    alarm = post_job(service)
    rounds(service)
    assert kept(service, alarm)[0].status == "refused"
    found = [one.id for one in windows(service)]
    now = service.context.now()
    again = service.context.store.write(lambda c: telemetry_queue.ask_again(c, found, now))
    assert again == 11
    assert {one.state for one in windows(service)} == {"queued"}


def test_one_pull_a_window_however_many_alarms_ask(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": prometheus.url})
    alarms = []
    for number in range(5):
        said = d.compute(mismatched_pairs=[[13, 5], [21, 13]], culprits=[13], loss=number)
        alarms.append(post_job(service, said, clock=f"14:00:{12 + number:02d}"))
    assert rounds(service) == 11
    assert len(windows(service)) == 11
    assert {one.tries for one in windows(service)} == {0}
    assert all(kept(service, one) for one in dict.fromkeys(alarms))


def test_a_window_is_pulled_again_once_its_end_is_stored(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": prometheus.url})
    late = {"check": "compute", "step": 30, "culprits": [13], "nonfinite": [], "verdicts": [],
            "mismatched_pairs": [[13, 5], [21, 13]], **d.WINDOW}  # fmt: skip
    now = service.context.now()
    at = (now - timedelta(seconds=20)).isoformat()
    service.post(
        {"kind": "rank_map", **d.rank_map()},
        {"kind": "alarm", **d.alarm(late), "time": at},
    )
    assert rounds(service) == 11
    found = windows(service)
    assert {(one.state, one.whole) for one in found} == {("queued", False)}
    assert all(one.next_at > now for one in found)
    assert all(one.pulled_at is not None for one in found)


def test_a_claim_that_runs_out_is_taken_by_another_worker(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": prometheus.url})
    alarm = post_job(service)
    pulling.plan_wanted(service.context)
    now = service.context.now()
    lease, long_ago = pulling.LEASE, now - pulling.LEASE - timedelta(seconds=1)
    store = service.context.store
    lost = store.write(lambda c: telemetry_claims.claim(c, "dead", now, lease, 100))
    assert len(lost) == 11
    assert pulling.pull_due(service.context, "other") == 0
    change(service, claimed_at=long_ago)
    assert pulling.pull_due(service.context, "other") == 11
    assert kept(service, alarm)[0].status == "nothing_found"
    late = store.write(
        lambda c: telemetry_claims.settle(c, lost[0].id, "dead", {"state": "refused"})
    )
    assert late is False


def test_a_source_that_is_away_is_asked_later_and_loses_nothing(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": "http://127.0.0.1:9", "timeout_s": 1})
    alarm = post_job(service)
    assert rounds(service) == 11
    found = windows(service)
    assert {one.state for one in found} == {"queued"}
    assert all(one.next_at > one.asked_at for one in found)
    assert all("did not give an answer" in one.said for one in found)
    assert kept(service, alarm)[0].whole is False


def test_the_second_source_answers_for_what_the_first_does_not_know(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus, {13: SBE})
    service = serve({"url": f"{prometheus.url}/wrong"}, {"url": prometheus.url})
    alarm = post_job(service)
    rounds(service)
    (reading,) = kept(service, alarm)
    assert reading.status == "risen"
    assert {one.source for one in windows(service)} == {"alpine/2"}
    assert any("alpine/1: The source refused" in str(one.warnings) for one in windows(service))


def test_an_alarm_without_a_map_waits_for_it(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus, {13: SBE})
    service = serve({"url": prometheus.url})
    (posted,) = service.post({"kind": "alarm", **d.alarm(d.CULPRIT)})
    assert rounds(service) == 0
    assert kept(service, str(posted["id"])) == []
    service.post({"kind": "rank_map", **d.rank_map()})
    assert rounds(service) == 11
    assert kept(service, str(posted["id"]))[0].status == "risen"


def test_a_fault_of_the_reduction_looks_at_every_node_within_a_limit(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve({"url": prometheus.url})
    alarm = post_job(service, {"check": "reduced gradient", "step": 31, "suspect_window": [31, 31]})
    assert rounds(service) == 32
    assert len(kept(service, alarm)) == 32
    assert {one.status for one in kept(service, alarm)} == {"not_collected"}


def test_blocks_of_a_pull_replace_those_of_the_one_before(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    quiet(prometheus)
    service = serve({"url": prometheus.url})
    post_job(service)
    rounds(service)
    store = service.context.store
    with store.reading() as connection:
        before = connection.execute(
            sa.select(sa.func.count()).select_from(telemetry_blocks)
        ).scalar()
    change(service, state="queued")
    assert rounds(service) == 11
    with store.reading() as connection:
        after = connection.execute(
            sa.select(sa.func.count()).select_from(telemetry_blocks)
        ).scalar()
    assert before == after == 33


def test_a_recorded_example_asks_nobody(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve({"url": prometheus.url})
    marked = {"labels": {"example": "true"}}
    *_, posted = service.post(
        {"kind": "rank_map", **d.rank_map(), **marked},
        {"kind": "alarm", **d.alarm(d.CULPRIT), **marked},
    )
    assert rounds(service) == 0
    said = service.read(f"/alarms/{posted['id']}")["telemetry"]
    assert said["state"] == "not_collected"
    assert "no source is asked" in said["why"] + str(said["readings"])
