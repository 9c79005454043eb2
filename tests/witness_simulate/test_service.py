"""Does the service read from a simulated job's documents what the job itself saw?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.actions.service import ADMIN_TOKEN, Service, until
from witness.ddp.schedule import Schedule
from witness.inject import Fault
from witness.simulate.scenarios import Layout
from witness.simulate.training import Outcome, Training, simulate

DOWN = Fault.on(1, "blocks.1.down")
FAULTS = {
    "culprit": DOWN.multiply(1000, element=100).since(23),
    "transient": DOWN.nan(100).once(25),
    "weights": DOWN.flip(22).in_weights().once(30),
    "reduced": DOWN.inf().in_reduced().once(25),
}


def job(name: str, service: Service, folder: Path) -> Training:
    """Describe a job of three nodes that reports to the service."""
    return Training(
        layout=Layout(3, 1),
        spool=str(folder),
        name=name,
        schedule=Schedule(10, 10, 10, peer_offset=1, rotate=False),
        faults=(FAULTS[name],) if name in FAULTS else (),
        start_step=20,
        last_step=31,
        url=service.url,
        token=ADMIN_TOKEN,
        replays=4,
        post_s=60,
    )


Run = Callable[[str], tuple[Training, Outcome]]


@pytest.fixture(scope="module")
def run(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Train a job once until its alarm or end, and wait until its words reached the service."""

    @cache
    def once(name: str) -> tuple[Training, Outcome]:
        training = job(name, service, tmp_path_factory.mktemp(name))
        outcome = simulate(training)
        assert outcome.left == 0, outcome.trouble
        return training, outcome

    return once


def alarm_of(service: Service, name: str) -> dict[str, Any]:
    """Read the only alarm of a job."""
    until(lambda: service.read("/alarms", job=name)["items"], "the alarm is there")
    (listed,) = service.read("/alarms", job=name)["items"]
    read: dict[str, Any] = service.read(f"/alarms/{listed['id']}")
    return read


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("culprit", {("R1", 1)}),
        ("transient", {("R3", 1)}),
        ("weights", {("W1", 1)}),
        ("reduced", {("G1", None)}),
    ],
)
def test_the_service_reads_what_the_job_saw(
    name: str, rules: set[tuple[str, int | None]], service: Service, run: Run
) -> None:
    training, outcome = run(name)
    seen, read = outcome.alarm, alarm_of(service, name)
    assert seen is not None
    assert (read["check"], read["step"]) == (seen["check"], seen["step"])
    assert read["suspect_window"] == seen["suspect_window"]
    assert read["reports"] == 3  # one of each node
    assert read["conflicts"] == []
    for key, value in seen.items():
        assert read["document"]["alarm"][key] == value, key
    found = read["findings"]
    assert {(one["rule"], one["rank"]) for one in found} == rules
    for one in found:
        if one["rank"] is not None:
            assert one["node"] == training.node(one["rank"])
            assert one["gpu_uuid"] == training.gpu(one["rank"])
            assert one["resolved"]
    # Its own verdict, from the digests, is the one that the job came to.
    cautions = {caution["code"] for one in found for caution in one["cautions"]}
    assert "digests_disagree" not in cautions
    assert [one["step"] for one in read["resume"]][:1] == [20]
    _page_says_it(service, read, seen)


def _page_says_it(service: Service, read: dict[str, Any], seen: dict[str, Any]) -> None:
    page = service.person("viewer").get(f"/alarms/{read['id']}")
    first, last = seen["suspect_window"]
    assert str(seen["step"]) in page
    assert (f"{first}–{last}" if first != last else str(first)) in page
    for one in read["findings"]:
        if one["rank"] is not None:
            assert f"rank {one['rank']}" in page
            assert one["node"] in page
    assert "digests do not bear it out" not in page


def test_a_digest_that_was_changed_on_the_way_is_noticed(service: Service, run: Run) -> None:
    run("culprit")
    read = alarm_of(service, "culprit")
    forged = read["document"] | {"kind": "alarm", "job": "forged"}
    forged["alarm"] = dict(forged["alarm"], mismatched_pairs=[[1, 0]], culprits=[1])
    service.post(forged)
    cautions = {
        caution["code"]
        for one in alarm_of(service, "forged")["findings"]
        for caution in one["cautions"]
    }
    assert "digests_disagree" in cautions


def test_passes_checkpoints_and_replays_arrive(service: Service, run: Run) -> None:
    run("clean")
    run("culprit")
    jobs = {one["job"]: one["id"] for one in service.read("/jobs")["items"]}
    clean, faulty = (service.read(f"/jobs/{jobs[name]}") for name in ("clean", "culprit"))
    passes = {one["check"]: one["count"] for one in clean["coverage"]}
    assert passes == {"nonfinite": 12, "ring": 2, "weights": 2}
    assert {one["gpu_audits"] for one in clean["coverage"]} == {36, 6}
    saved = {one["step"]: one["tags"] for one in clean["checkpoints"]}
    assert saved[30] == {"last_audit_pass": 30, "last_weight_check_pass": 30}
    assert clean["recent_alarms"] == []
    assert [(one["replays"], one["wrong"]) for one in faulty["replays"]] == [(4, 4)]
    assert faulty["resume_floor"]["highest_step"] == 20
