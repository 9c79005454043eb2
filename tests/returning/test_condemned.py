"""Is a condemned GPU known again in whatever machine it comes back, and said loudly?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.actions import adjudicate, condemned, screening, writing
from app.actions.decide import Decider
from app.actions.orders.ports import Link
from app.errors import Problem
from app.store import condemned_reading, proposals
from app.store.condemned import Condemned, Register
from app.store.ids import read, show
from tests.actions.fleet import LAST_GPU_OF_SUSPECT, NODES, SUSPECT, alarm, rank_map
from tests.actions.service import Service
from tests.doubles.kubernetes.double import KubernetesDouble

UUID = LAST_GPU_OF_SUSPECT
OLGA = Decider("olga", "operator")
BOTH = {
    "test_somebody_takes_note_with_a_reason_and_another_job_is_said_again",
    "test_a_gpu_that_moved_before_it_was_condemned_is_found",
    "test_a_decision_hears_of_what_it_was_made_without",
}


def at(minutes: float) -> str:
    """Say a time so many minutes from now."""
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def confirmed(service: Service) -> str:
    """Post a job and its alarm, and close the case as hardware; give the case's id."""
    service.post(rank_map(), alarm())
    (case,) = service.read("/cases")["items"]
    judged(service, case["id"], "open", "hardware confirmed")
    return str(case["id"])


def judged(service: Service, case_id: str, before: str, after: str) -> None:
    """Say what a case turned out to be."""
    adjudicate.adjudicate(service.context, read(case_id), OLGA, before, after, "vendor ticket")


def elsewhere(uuid: str = UUID, minutes: float = 5, job: str = "moe-7b") -> dict[str, Any]:
    """Place a job on the other three nodes, with the GPU in one of them."""
    placed = rank_map(job, at(minutes), order=(1, 3, 4, 1))
    placed["ranks"] = placed["ranks"][:24]
    placed["world_size"] = 24
    placed["ranks"][9]["gpu_uuid"] = uuid
    return placed


def sightings(service: Service) -> tuple[condemned_reading.Sighting, ...]:
    """List what nobody has taken note of."""
    with service.context.store.reading() as connection:
        return condemned_reading.open_ones(connection, 10)


@pytest.mark.parametrize(
    ("spelling", "certain"),
    [(UUID, True), (UUID.removeprefix("GPU-").upper(), True), (f"b'{UUID}'", True),
     (f"MIG-{UUID}/1/0", True), ("GPU-a0000002-1111-4222", False)],
)  # fmt: skip
def test_it_is_known_in_another_machine_however_it_is_spelt(
    make_service: Callable[..., Service], spelling: str, certain: bool
) -> None:
    service = make_service()
    case_id = confirmed(service)
    before = service.read(f"/cases/{case_id}")["evidence_version"]
    service.post(elsewhere(spelling), elsewhere(spelling))
    (seen,) = sightings(service)
    assert (seen.uuid, seen.node, seen.job, seen.rank) == (UUID, NODES[2], "moe-7b", 9)
    assert (seen.certain, seen.same_machine) == (certain, False)

    docket = service.person().get("/")
    assert "condemned GPU" in docket or "may be a condemned one" in docket
    assert condemned.tell(service.context) == 1
    assert condemned.tell(service.context) == 0
    case = service.read(f"/cases/{case_id}")
    assert case["evidence_version"] == before + 1
    (cordon,) = [one for one in case["proposals"] if one["target"]["node"] == NODES[2]]
    assert (cordon["action"], cordon["status"]) == ("cordon", "proposed")
    assert "gpu.condemned_back" in service.audit()
    assert "is back" in service.person().get(f"/cases/{case_id}")
    gpu = service.person().get(service.read(f"/gpus/{UUID}")["url"])
    assert "hardware confirmed" in gpu
    assert "is back" in gpu


def test_the_same_machine_a_late_map_and_an_innocent_gpu(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    confirmed(service)
    late = elsewhere(minutes=-60, job="late")
    service.post(late, elsewhere("GPU-a0000002-1111-4222-8333-0000000000ff", job="other"))
    assert sightings(service) == ()
    service.post({**rank_map(time=at(3)), "attempt": 2}, {**rank_map(time=at(9)), "attempt": 3})
    (seen,) = sightings(service)
    assert (seen.same_machine, seen.starts, seen.node) == (True, 2, SUSPECT)
    assert "works again" in seen.words


def test_somebody_takes_note_with_a_reason_and_another_job_is_said_again(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    case_id = confirmed(service)
    service.post(elsewhere())
    (seen,) = sightings(service)
    person = service.person()
    address = f"/condemned/{condemned_id(seen)}/note"
    page = f"/cases/{case_id}"
    assert person.send(address, page, reason=" ").status_code == 422
    after = person.press(address, page, reason="vendor test bench", back=page)
    assert "took note" in after
    assert "vendor test bench" in after
    assert sightings(service) == ()
    with pytest.raises(Problem, match="took note already"):
        condemned.acknowledge(service.context, seen.id, OLGA, "again")
    with pytest.raises(Problem, match="needs the role operator"):
        condemned.acknowledge(service.context, seen.id, Decider("v", "viewer"), "so")
    service.post(elsewhere(minutes=9))
    assert sightings(service) == ()
    service.post(elsewhere(minutes=9, job="another"))
    assert [one.job for one in sightings(service)] == ["another"]
    judged(service, case_id, "hardware confirmed", "software")
    assert sightings(service) == ()


def condemned_id(seen: condemned_reading.Sighting) -> str:
    """Write a sighting's id as addresses do."""
    return show(seen.id)


def test_a_gpu_that_moved_before_it_was_condemned_is_found(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    service.post(rank_map(), alarm(), elsewhere(minutes=-30))
    (case,) = service.read("/cases")["items"]
    judged(service, case["id"], "open", "hardware confirmed")
    (seen,) = sightings(service)
    assert (seen.node, seen.job) == (NODES[2], "moe-7b")


def test_a_verified_replacement_condemns_the_gpu_and_proposes_a_screening(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    service.post(rank_map(), alarm())
    (case,) = service.read("/cases")["items"]
    link = Link(SUSPECT.removeprefix("hyperpod-"), "i-0c0ffee000000000b", "logical_id",
                SUSPECT, "hyperpod-i-0c0ffee000000000b")  # fmt: skip
    shown = service.proposal()

    def write(connection: Any) -> Any:
        replaced = proposals.get(connection, read(shown["id"]))
        assert replaced is not None
        return screening.after_replacement(connection, replaced, link, datetime.now(UTC))

    made = writing.write(service.context, write)
    assert made.parameters["checks"] == ["MultiNodeTrainingValidation"]
    assert (made.instance_id, made.status) == ("i-0c0ffee000000000b", "proposed")
    assert writing.write(service.context, write) is None
    service.post(alarm(time="2026-03-02T10:20:00Z", step=31))  # judged again: it stays
    judged(service, case["id"], "open", "hardware confirmed")
    left = [one for one in service.read(f"/cases/{case['id']}")["proposals"]
            if one["status"] == "proposed"]  # fmt: skip
    assert [one["target"]["instance_id"] for one in left] == ["i-0c0ffee000000000b"]
    service.post(elsewhere())
    assert len(sightings(service)) == 1


def test_a_register_is_looked_up_by_uuid_and_by_the_start_of_one() -> None:
    now = datetime.now(UTC)
    known = [
        Condemned(number, f"GPU-{number:08x}-1111", number, "alpine", None, None, now, "replaced")
        for number in range(1000)
    ]
    register = Register(known)
    assert register.find("GPU-000000ff-1111", short=False) == (known[255],)
    assert register.find("GPU-000000ff", short=False) == ()
    assert register.find("GPU-000000f", short=True) == tuple(known[240:256])
    assert register.find("GPU-zz", short=True) == ()
    assert register.find(None, short=True) == ()
    assert not Register([])


def test_a_decision_hears_of_what_it_was_made_without(
    make_service: Callable[..., Service], cluster: KubernetesDouble
) -> None:
    service = make_service(cluster)
    case_id = confirmed(service)
    service.post(elsewhere())
    condemned.tell(service.context)
    case = service.read(f"/cases/{case_id}")
    (seen,) = case["condemned_at_work"]
    assert (seen["job"], seen["node"], seen["acknowledged_by"]) == ("moe-7b", NODES[2], None)
    (shown,) = [one for one in case["proposals"] if one["status"] == "proposed"]
    late = service.decide({**shown, "evidence_version": shown["evidence_version"] - 1})
    assert late.status_code == 409
    assert "A condemned GPU is back" in late.json()["error"]["message"]
    after = service.decide(shown).json()
    assert after["status"] == "verified", after
    assert cluster.node(NODES[2])["spec"]["unschedulable"] is True
