"""Does what a job reports stand on the service's reads, once, whoever and however often reports?"""

from __future__ import annotations

from pathlib import Path

from tests.witness_report.conftest import Making, Service, alarm, rows, spooled, until
from witness.wire import Envelope


def test_every_kind_lands_and_reads_as_meant(
    service: Service, make: Making, job: str, tmp_path: Path
) -> None:
    reporter = make(service.url, service.token)
    reporter.rank_map(rows(), 3, gpus_per_node=1, peer_offset=1)
    for step in range(1, 31):
        reporter.passed("nonfinite", step, gpus=3, step_time_s=0.25)
        if step % 10 == 0:
            reporter.passed("ring", step, gpus=3, mode="deterministic", peer_offset=1)
    reporter.checkpoint(20, tmp_path / "20", {"last_audit_pass": 20})
    assert reporter.alarm(alarm())
    reporter.replays(30, 1, [0, 2], 20, 20)
    reporter.elastic_event("slice_down", slice=2, step=30)
    reporter.close(5)
    assert spooled(tmp_path / "spool") == []
    assert reporter.status()["failures"] == {}
    assert reporter.status()["posted"] == 7

    (found,) = service.alarms(job)
    assert (found["step"], found["attempt"], found["map_state"]) == (30, 1, "own")
    whole = service.read(f"/alarms/{found['id']}")
    assert whole["suspect_window"] == [21, 30]
    (culprit,) = [one for one in whole["findings"] if one["rule"] == "R1"]
    assert culprit["node"] == rows()[1]["node"]
    assert culprit["gpu_uuid"] == rows()[1]["gpu_uuid"]
    assert whole["document"]["alarm"] == alarm()
    assert whole["resume"][0]["step"] == 20
    page = service.read("/jobs", job=job)["items"][0]
    assert (page["attempts"], page["world_size"]) == (1, 3)
    floor = reporter.resume_floor()
    assert (floor.known, floor.highest_step, floor.window) == (True, 20, (21, 30))
    assert (floor.step, floor.uri) == (20, str(tmp_path / "20"))


def test_beats_add_up_to_the_passes(service: Service, make: Making, job: str) -> None:
    reporter = make(service.url, service.token, options={"beat_s": 0.2})
    reporter.rank_map(rows(), 3)
    for step in range(1, 101):
        reporter.passed("nonfinite", step, gpus=3, step_time_s=0.5)
        if step == 50:
            until(lambda: (reporter.status().get("posted") or 0) >= 2, "a beat is posted")
    reporter.close(5)
    item = service.read("/jobs", job=job)["items"][0]
    text = str(service.read(f"/jobs/{item['id']}"))
    assert "nonfinite" in text
    assert reporter.status()["posted"] >= 3  # the map and at least two beats


def test_the_first_rank_of_every_node_reports_one_alarm(
    service: Service, make: Making, job: str, tmp_path: Path
) -> None:
    for rank in range(3):
        spool = tmp_path / f"node-{rank}"
        reporter = make(service.url, service.token, rank=rank, spool=spool)
        reporter.rank_map(rows(), 3)
        reporter.passed("ring", 20, gpus=3)
        reporter.checkpoint(20, "s3://b/20", None)
        assert reporter.alarm(alarm())
        second = make(service.url, service.token, rank=rank, local_rank=1, spool=spool)
        assert not second.alarm(alarm())
        reporter.close(5)
        second.close(5)
        assert reporter.status()["posted"] == (4 if rank == 0 else 1)
    (found,) = service.alarms(job)
    assert (found["reports"], found["reporters"], found["conflicts"]) == (3, 3, 0)


def test_starts_are_told_apart_by_rank_zero_s_count(
    service: Service, make: Making, job: str
) -> None:
    for attempt in (1, 2):
        # A launcher that counted differently on the second machine.
        envelope = Envelope("alpine", "research", job, 1)
        reporter = make(service.url, service.token, envelope=envelope)
        reporter.adopt(attempt, f"start-{attempt}")
        reporter.rank_map(rows(), 3)
        reporter.alarm(alarm())
        reporter.close(5)
    assert [one["attempt"] for one in service.alarms(job)] == [1, 2]


def test_a_document_that_intake_refuses_is_kept_and_the_reason_is_told(
    service: Service, make: Making, job: str, tmp_path: Path
) -> None:
    reporter = make(service.url, service.token)
    reporter.alarm({**alarm(), "suspect_window": [30, 21]})
    reporter.alarm(alarm(40))
    until(lambda: reporter.status()["failures"], "the refusal is counted")
    reporter.close(5)
    assert spooled(tmp_path / "spool") == ["0000000001.alarm.rejected"]
    assert "alarm.suspect_window" in reporter.status()["last_failures"]["posting a document"]
    assert [one["step"] for one in service.alarms(job)] == [40]


def test_a_wrong_token_loses_nothing(
    service: Service, make: Making, job: str, tmp_path: Path
) -> None:
    token = ["wrong"]
    reporter = make(service.url, lambda: token[0])
    assert reporter.alarm(alarm())
    until(lambda: reporter.status()["failures"], "the refusal is counted")
    assert "401" in reporter.status()["last_failures"]["posting"]
    assert len(spooled(tmp_path / "spool")) == 1
    token[0] = service.token  # a secret is rotated
    until(lambda: reporter.status().get("posted") == 1, "it is delivered")
    assert len(service.alarms(job)) == 1


def test_a_map_of_a_thousand_ranks_places_an_alarm(
    service: Service, make: Making, job: str
) -> None:
    reporter = make(service.url, service.token)
    reporter.rank_map(rows(1_000), 1_000, peer_offset=1)
    reporter.alarm({**alarm(), "world_size": 1_000})
    reporter.close(10)
    (found,) = service.alarms(job)
    assert found["map_state"] == "own"
