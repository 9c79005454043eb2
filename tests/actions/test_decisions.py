"""Is there exactly one decision on a proposal, whoever else decides at the same moment?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from app.actions import decide, execute
from app.actions.decide import Choice, Decider
from app.context import Context
from app.errors import Problem
from app.store import audit_reading, ids, run_settings
from tests.actions.fleet import NODES, SUSPECT, alarm, envelope, node, rank_map
from tests.actions.service import BEARER, Person, Service
from tests.doubles.kubernetes.double import KubernetesDouble

ROUNDS = 20


def test_of_four_simultaneous_decisions_one_is_kept(
    make_service: Callable[..., Service], cluster: KubernetesDouble
) -> None:
    service = make_service(cluster)
    service.post(*(document for number in range(ROUNDS) for document in _one_more(number)))
    for number in range(ROUNDS):
        cluster.put("nodes", node(f"node-{number}-1"))
    proposals = service.proposals(status="proposed")
    assert len(proposals) == ROUNDS
    clicks = (("alice", "approve"), ("alice", "approve"), ("bob", "approve"), ("carol", "reject"))
    deciders = [(service.person("operator", name), verdict) for name, verdict in clicks]
    tokens = {id(person): person.token("/settings") for person, _ in deciders}
    with ThreadPoolExecutor(len(deciders)) as pool:
        for proposal in proposals:
            clicked = [
                pool.submit(_click, person, verdict, tokens[id(person)], proposal)
                for person, verdict in deciders
            ]
            pages = [one.result() for one in clicked]
            said = Counter("already decided by" in page for page in pages)
            assert said[True] == len(deciders) - 1, pages
            service.settled(proposal)
            after = service.read(f"/proposals/{proposal['id']}")
            assert after["decided_by"] in ("alice", "bob", "carol")
            sent = [c for c in cluster.changes("PATCH") if c.path.endswith(_node_of(proposal))]
            if after["decided_by"] == "carol":
                assert (after["status"], len(sent)) == ("rejected", 0)
            else:
                assert (after["status"], len(sent)) == ("verified", 1)
    entries = _decisions(service)
    assert Counter(entries) == {proposal["id"]: 1 for proposal in proposals}


def _one_more(number: int) -> tuple[dict[str, object], dict[str, object]]:
    """Make a job on four nodes of its own, with an alarm on its rank 13."""
    job = f"job-{number}"
    ranks = [
        {
            "rank": rank,
            "node": f"node-{number}-{rank // 8}",
            "gpu_uuid": f"GPU-{number:08x}-1111-4222-8333-{rank:012d}",
        }
        for rank in range(32)
    ]
    placed = envelope("rank_map", job, "2026-03-02T10:00:00Z", world_size=32, ranks=ranks)
    return placed, alarm(job)


def _node_of(proposal: dict[str, Any]) -> str:
    return f"/{proposal['target']['node']}"


def _click(person: Person, verdict: str, token: str, proposal: dict[str, object]) -> str:
    fields = {"csrf": token, "evidence_version": proposal["evidence_version"], "reason": ""}
    answer = person.http.post(f"/proposals/{proposal['id']}/{verdict}", data=fields)
    assert answer.status_code == 303, answer.text
    page: str = person.http.get(answer.headers["location"]).text
    return page


def _decisions(service: Service) -> list[str]:
    with service.context.store.reading() as connection:
        entries = audit_reading.page(
            connection, audit_reading.Filter(verb="proposal"), before=None, limit=1_000
        )
    decided = ("proposal.approved", "proposal.rejected")
    return [
        ids.show(entry.proposal_id)
        for entry in entries
        if entry.verb in decided and entry.proposal_id is not None
    ]


def test_a_decided_proposal_names_who_and_when(service: Service) -> None:
    proposal = service.proposal()
    assert service.decide(proposal, "reject", reason="vendor first").status_code == 200
    second = service.decide(proposal)
    assert second.status_code == 409
    error = second.json()["error"]
    assert error["code"] == "already_decided"
    assert error["decided_by"] == "administrator's token"
    assert error["decision"] == "rejected"
    assert "was already decided by administrator's token at 20" in error["message"]


def test_new_evidence_makes_a_decision_stale_and_says_what_is_new(
    service: Service, cluster: KubernetesDouble
) -> None:
    proposal = service.proposal()
    service.post(
        rank_map("moe-7b", "2026-03-11T09:50:00Z"), alarm("moe-7b", "2026-03-11T10:00:00Z")
    )
    stale = service.decide(proposal)
    assert stale.status_code == 409
    error = stale.json()["error"]
    assert error["code"] == "evidence_changed"
    assert error["evidence_version"] > proposal["evidence_version"]
    assert "moe-7b" in error["message"]
    assert error["changed"][0]["kind"] == "culprit"
    page = service.person().press(
        f"/proposals/{proposal['id']}/approve", evidence_version=proposal["evidence_version"]
    )
    assert "The evidence changed since this was shown" in page
    assert cluster.calls == []
    again = service.proposal()
    assert again["id"] == proposal["id"]
    assert service.decide(again).json()["status"] == "verified"


def test_the_brake_refuses_a_cordon_and_never_an_undo(
    service: Service, cluster: KubernetesDouble
) -> None:
    first = service.proposal()
    service.decide(first)
    _brake(service.context, pulled=True)
    service.post(
        rank_map("moe-7b", "2026-03-11T09:50:00Z"),
        alarm("moe-7b", "2026-03-11T10:00:00Z", culprits=[5], mismatched_pairs=[[5, 29], [13, 5]]),
    )
    second = next(one for one in service.proposals() if one["target"]["node"] == NODES[0])
    refused = service.decide(second)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "brake"
    assert "half the fleet named" in refused.json()["error"]["message"]
    page = service.person().get(f"/proposals/{second['id']}")
    assert 'class="btn do"' not in page
    undo = f"/proposals/{first['id']}/undo"
    service.person("operator", "zoe").press(undo, undo, node_uid="", reason="")
    service.settled(service.proposal("uncordon"))
    assert "unschedulable" not in cluster.node(SUSPECT)["spec"]


def _brake(context: Context, *, pulled: bool) -> None:
    now = context.now()
    context.store.write(
        lambda c: run_settings.set_brake(c, pulled, "half the fleet named", by="ann", at=now)
    )


def test_what_was_approved_before_the_brake_is_not_sent_after_it(
    service: Service, cluster: KubernetesDouble
) -> None:
    service.app.state.executor.stop()
    proposal = service.proposal()
    decided = decide.decide(
        service.context,
        ids.read(proposal["id"]),
        Decider("alice", "operator"),
        Choice("approved", proposal["evidence_version"]),
    )
    _brake(service.context, pulled=True)
    assert execute.run_one(service.context, decided.id, "worker")
    after = service.read(f"/proposals/{proposal['id']}")
    assert after["status"] == "refused"
    assert "nothing was changed" in after["outcome"]
    _brake(service.context, pulled=False)
    assert not execute.run_one(service.context, decided.id, "worker")
    assert cluster.calls == []


def test_what_was_approved_long_ago_is_not_sent_after_an_outage(
    service: Service, cluster: KubernetesDouble
) -> None:
    service.app.state.executor.stop()
    proposal = service.proposal()
    choice = Choice("approved", proposal["evidence_version"])
    alice = Decider("alice", "operator")
    decided = decide.decide(service.context, ids.read(proposal["id"]), alice, choice)
    later = replace(service.context, now=lambda: service.context.now() + timedelta(hours=2))
    assert execute.run_one(later, decided.id, "worker")
    after = service.read(f"/proposals/{proposal['id']}")
    assert after["status"] == "refused"
    assert "too long to be sent now" in after["outcome"]
    assert cluster.calls == []


def test_one_action_on_a_node_at_a_time(service: Service) -> None:
    service.app.state.executor.stop()
    alarm_on_another_gpu = alarm(
        "moe-7b", "2026-03-11T10:00:00Z", culprits=[12], mismatched_pairs=[[12, 4], [20, 12]]
    )
    service.post(rank_map("moe-7b", "2026-03-11T09:50:00Z"), alarm_on_another_gpu)
    first, second = (one for one in service.proposals() if one["target"]["node"] == SUSPECT)
    person = Decider("alice", "operator")
    choice = Choice("approved", first["evidence_version"])
    decide.decide(service.context, ids.read(first["id"]), person, choice)
    choice = Choice("approved", second["evidence_version"])
    with pytest.raises(Problem, match="approved by alice") as refused:
        decide.decide(service.context, ids.read(second["id"]), person, choice)
    assert refused.value.code == "node_busy"


def test_a_proposal_that_nobody_decided_expires(service: Service) -> None:
    proposal = service.proposal()
    late = replace(service.context, now=lambda: service.context.now() + timedelta(days=8))
    choice = Choice("approved", proposal["evidence_version"])
    with pytest.raises(Problem, match="expired undecided"):
        decide.decide(late, ids.read(proposal["id"]), Decider("alice", "operator"), choice)
    assert service.read(f"/proposals/{proposal['id']}")["status"] == "expired"
    assert service.decide(proposal).status_code == 409


def test_a_decision_needs_its_role_and_its_token(service: Service) -> None:
    proposal = service.proposal()
    path = f"{service.url}/api/v1/proposals/{proposal['id']}/approve"
    body = {"evidence_version": proposal["evidence_version"]}
    assert httpx2.post(path, json=body).status_code == 401
    assert httpx2.get(path, headers=BEARER).status_code == 405
    assert httpx2.post(path, json={}, headers=BEARER).status_code == 422
    viewer = service.person("viewer")
    answer = viewer.send(f"/proposals/{proposal['id']}/approve", **_text(body))
    assert answer.status_code == 403
    assert service.read(f"/proposals/{proposal['id']}")["status"] == "proposed"
    unknown = f"{service.url}/api/v1/proposals/0000000000000/approve"
    assert httpx2.post(unknown, json=body, headers=BEARER).status_code == 404


def _text(body: dict[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in body.items()}
