"""A node that somebody else holds, that is gone, or of which nobody speaks: is it told so?"""

from __future__ import annotations

import time

from tests.actions.service import until
from tests.previews.conftest import MakeScene
from tests.previews.scene import INSTANCE, NODE, Scene, cluster_of


def _ends(scene: Scene, proposal: str) -> dict[str, str]:
    def row() -> dict[str, str]:
        found: dict[str, str] = scene.service.read(f"/proposals/{proposal}")
        return found

    until(lambda: row()["status"] not in ("approved", "executing"), "it is sent", 30)
    return row()


def test_a_cordon_of_somebody_else_is_satisfied_and_never_lifted(make_scene: MakeScene) -> None:
    scene = make_scene(cluster_of("already_cordoned"), provider=False)
    proposal, bob = scene.service.proposal()["id"], scene.service.person("operator", "bob")
    page = bob.get(f"/proposals/{proposal}")
    assert "Already cordoned by someone else: CHG-77" in page
    assert "recorded as satisfied without change" in page
    scene.approve(bob, proposal)
    row = _ends(scene, proposal)
    assert (row["status"], row["result"]) == ("verified", "already_by_other")
    after = bob.get(f"/proposals/{proposal}")
    assert "Satisfied without change" in after
    assert "CHG-77" in bob.get(f"/proposals/{proposal}/undo")
    bob.press(f"/proposals/{proposal}/undo", f"/proposals/{proposal}/undo")
    node = scene.kubernetes.node(NODE)
    assert node["spec"]["unschedulable"] is True
    assert scene.kubernetes.changes("PATCH") == []


def test_a_node_that_is_gone_ends_as_gone_and_stays_in_the_history(make_scene: MakeScene) -> None:
    scene = make_scene(cluster_of("four_nodes"))
    assert scene.sagemaker is not None
    del scene.sagemaker.cluster.nodes[INSTANCE]
    scene.kubernetes.remove(NODE)  # the double of the provider brought it along
    cordon, replace = scene.service.proposal()["id"], scene.propose("replace")
    page = scene.page(replace)
    assert f"The node is gone: the cluster knows no node {NODE}" in page
    assert f"The provider knows no machine {INSTANCE}: it is gone" in page
    assert "Nobody’s" in page  # whose work ends
    alice = scene.service.person("approver", "alice")
    scene.approve(alice, cordon)
    assert _ends(scene, cordon)["status"] == "gone"
    scene.approve(alice, replace, node=NODE)
    assert _ends(scene, replace)["status"] == "gone"
    sent = len(scene.kubernetes.requests), len(scene.sagemaker.requests)
    for one in (cordon, replace):
        after = alice.get(f"/proposals/{one}")
        assert "is gone" in after
        assert "Propose it again" not in after
        assert "data-live=" not in after
    time.sleep(0.3)
    assert (len(scene.kubernetes.requests), len(scene.sagemaker.requests)) == sent
    assert scene.sagemaker.calls == []
    assert len(scene.service.read("/alarms")["items"]) == 1


def test_what_is_not_read_is_not_known_and_needs_words(make_scene: MakeScene) -> None:
    scene = make_scene()
    assert scene.sagemaker is not None
    scene.kubernetes.set_fault("GET /api/v1/pods", status=500, body={})
    scene.sagemaker.answer_with(
        "DescribeCluster",
        *[{"status": 503, "body": {"__type": "ServiceUnavailable", "message": "away"}}] * 8,
    )
    page = scene.page(scene.propose("replace"))
    assert "Pods on it: not known, the cluster could not be read" in page
    assert "<bdi>pods not known</bdi>" in page
    assert "NodeRecovery, autoscaler and patching: not known" in page
    assert "Spare capacity: not known" in page
    assert "The node is Ready" in page


def test_a_cluster_that_is_away_leaves_a_page_and_no_guess(make_scene: MakeScene) -> None:
    scene = make_scene(provider=False)
    scene.kubernetes.set_fault("GET /api/v1/nodes", status=503, body={})
    page = scene.page(scene.propose("replace"))
    assert "Not known" in page
    assert "Traceback" not in page
    assert "Spare capacity: not known" in page
    assert "2 checkpoints of llama-953m on the node’s own disks" in page  # we know that ourselves


def test_a_dry_run_says_that_nothing_would_be_sent(make_scene: MakeScene) -> None:
    scene = make_scene(provider=False)
    page = scene.page(scene.propose("replace"))
    assert "An approval is kept as a dry run and changes nothing" in page


def test_programs_read_the_same_preview(make_scene: MakeScene) -> None:
    scene = make_scene()
    proposal = scene.propose("replace")
    found = scene.service.read(f"/proposals/{proposal}/preview")
    assert [one["namespace"] for one in found["pods"]] == ["vision", "research", "kube-system"]
    assert found["pods"][0]["whose"] == "other"
    assert found["pods_known"] is True
    assert found["confirmation"] == {"node": NODE, "words": "end pods of vision"}
    assert found["refusal"] is None
    assert found["platform"]["node_recovery"] == "Automatic"
    assert found["platform"]["already"] == []
    assert found["resume"]["choices"][0]["step"] == 20
    assert found["resume"]["hour_of_waiting"]["gpu_hours"] == 32
    assert any("local NVMe" in one["what"] for one in found["lost"])
    assert {one["job"] for one in found["local_checkpoints"]} == {"llama-953m"}
    local = [one for one in found["local_checkpoints"] if one["certain"]]
    assert [(one["newest_step"], one["newest_shared_step"]) for one in local] == [(28, 10)]
    assert found["spare"]["free"] == 2
    assert found["seen"]["uid"]
