"""Does one click cordon the node, once and provably, and another one undo it?"""

from __future__ import annotations

from collections.abc import Callable

from tests.actions.fleet import LAST_GPU_OF_SUSPECT, SUSPECT, alarm, rank_map
from tests.actions.service import Service
from tests.doubles.kubernetes.double import KubernetesDouble


def test_an_approved_cordon_is_patched_once_and_proven(
    service: Service, cluster: KubernetesDouble
) -> None:
    proposal = service.proposal()
    person = service.person("operator", "alice")
    preview = person.get(f"/proposals/{proposal['id']}")
    assert "Schedulable: new pods can land on it now" in preview
    assert "can be undone" in preview

    page = person.press(
        f"/proposals/{proposal['id']}/approve",
        f"/proposals/{proposal['id']}",
        **_fields(person.form(f"/proposals/{proposal['id']}")),
        reason="ring and topology look right",
    )

    assert "approved by alice at" in page
    service.settled(proposal)
    assert "Read again: it stands." in person.get(f"/proposals/{proposal['id']}")
    stored = cluster.node(SUSPECT)
    assert stored["spec"]["unschedulable"] is True
    taints = {taint["key"] for taint in stored["spec"]["taints"]}
    assert "silent-witness.dev/sdc-suspect" in taints
    notes = stored["metadata"]["annotations"]
    assert notes["silent-witness.dev/by"] == "alice"
    assert notes["silent-witness.dev/proposal"] == proposal["id"]
    assert len(cluster.changes("PATCH")) == 1
    assert len(cluster.events()) == 1
    after = service.read(f"/proposals/{proposal['id']}")
    assert (after["status"], after["decided_by"]) == ("verified", "alice")
    assert after["target"]["node_uid"] == stored["metadata"]["uid"]


def test_the_audit_names_who_when_and_on_which_evidence(service: Service) -> None:
    proposal = service.proposal()
    service.decide(proposal, reason="seen the ring")
    said = service.audit()
    approved = said["proposal.approved"]
    assert "seen the ring" in approved.summary
    assert approved.details["evidence_version"] == proposal["evidence_version"]
    assert {"proposal.accepted", "proposal.verified"} <= said.keys()


def test_undo_takes_our_cordon_off_and_keeps_the_case(
    service: Service, cluster: KubernetesDouble
) -> None:
    proposal = service.proposal()
    service.decide(proposal)
    person = service.person("operator", "bob")
    undo = f"/proposals/{proposal['id']}/undo"
    assert "it is ours to lift" in person.get(undo)
    fields = _fields(person.form(undo))
    page = person.press(undo, undo, node_uid=fields["node_uid"], reason="passed an aimed audit")
    assert "Uncordon of" in page
    assert "approved by bob" in page
    service.settled(service.proposal("uncordon"))
    stored = cluster.node(SUSPECT)
    assert "unschedulable" not in stored["spec"]
    assert not stored["spec"].get("taints")
    assert service.proposal("uncordon")["status"] == "verified"
    (case,) = service.read("/cases")["items"]
    assert case["gpu_uuid"] == LAST_GPU_OF_SUSPECT
    # Pressing it again does nothing: there is nothing left to lift.
    again = person.press(undo, undo, node_uid="", reason="")
    assert "already decided by bob" in again
    assert len(cluster.changes("PATCH")) == 2


def test_without_a_cluster_an_approval_is_kept_as_a_dry_run(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    service.post(rank_map(), alarm())
    proposal = service.proposal()
    page = service.person().get(f"/proposals/{proposal['id']}")
    assert "no cluster is configured for alpine" in page
    answer = service.decide(proposal)
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["result"]) == ("refused", "dry_run")
    assert "no cluster is configured" in answer.json()["outcome"]
    assert "dry run, nothing changed" in service.person().get(f"/proposals/{proposal['id']}")


def _fields(form: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if name != "csrf"}
