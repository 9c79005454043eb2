"""What the platform does by itself: is it said before the click, and never done a second time?"""

from __future__ import annotations

import re

import pytest

from app.actions import looking
from app.store import ids
from tests.actions.service import until
from tests.previews.conftest import MakeScene
from tests.previews.scene import INSTANCE, NODE, Scene, cluster_of
from witness.rules.platform_signs import HEALTH

PENDING = "UnschedulablePendingReplacement"


def _marked(labels: dict[str, str]) -> dict[str, object]:
    found = cluster_of("four_nodes")
    for one in found["nodes"]:
        if one["metadata"]["name"] == NODE:
            one["metadata"]["labels"] |= labels
    return found


def _row(scene: Scene, proposal: str) -> dict[str, str]:
    found: dict[str, str] = scene.service.read(f"/proposals/{proposal}")
    return found


def _ends(scene: Scene, proposal: str) -> dict[str, str]:
    until(
        lambda: _row(scene, proposal)["status"] not in ("approved", "executing"), "it is sent", 30
    )
    return _row(scene, proposal)


def test_the_platform_was_faster(make_scene: MakeScene) -> None:
    scene = make_scene(_marked({HEALTH: PENDING}))
    assert scene.sagemaker is not None
    scene.sagemaker.platform_replaces(INSTANCE)
    proposal = scene.propose("replace")
    page = scene.page(proposal)
    assert "The platform is already replacing this node" in page
    assert f"label {HEALTH}={PENDING}" in page
    assert "status ShuttingDown at the provider" in page
    assert "ends as already under way" in page
    # It is said at once, above the panel.
    assert page.index("already replacing") < page.index('id="act"')
    alice = scene.service.person("approver", "alice")
    scene.approve(alice, proposal, node=NODE)
    row = _ends(scene, proposal)
    assert row["status"] not in ("failed", "refused", "unknown")
    assert row["result"] == "under_way"
    assert scene.sagemaker.calls == []
    assert not any("labels" in str(one.body) for one in scene.kubernetes.calls)
    after = alice.get(f"/proposals/{proposal}")
    assert "Propose it again" not in after
    assert "Already under way" in after
    scene.sagemaker.advance(minutes=60)
    looking.look_again(scene.service.context, ids.read(proposal))
    done = alice.get(f"/proposals/{proposal}")
    assert "Replaced by" in done
    assert _row(scene, proposal)["status"] == "verified"
    assert scene.sagemaker.calls == []


def test_an_aimed_audit_touches_nothing_and_is_told_of_the_platform(make_scene: MakeScene) -> None:
    scene = make_scene()
    page = scene.page(scene.propose("targeted_audit"), role="operator")
    assert "nothing is changed on the node" in page
    assert "no work moves for it" in page
    assert "NodeRecovery is Automatic" in page
    assert "Would be lost" not in page
    assert "Type the node" not in page


def test_a_deep_health_check_is_told_with_its_teeth(make_scene: MakeScene) -> None:
    scene = make_scene()
    proposal = scene.propose("deep_health_check", checks=["InstanceStress"])
    page = scene.page(proposal)
    assert "cannot be undone" in page
    assert "restarted or replaced by the platform without asking again" in page
    assert "45 to 135 minutes" in page
    assert "InstanceStress" in page
    assert "Would be lost if it fails" in page
    assert "NodeRecovery is Automatic" in page
    assert "vit-huge-0" in page
    assert "Type the node’s name" in page
    assert scene.sagemaker is not None
    assert scene.sagemaker.calls == []


def test_a_running_deep_health_check_is_seen(make_scene: MakeScene) -> None:
    scene = make_scene(
        _marked({"sagemaker.amazonaws.com/deep-health-check-status": "InProgress"}), provider=False
    )
    page = scene.page(scene.propose("replace"))
    assert "A deep health check runs on this node" in page
    assert "no provider is configured" in page


def test_karpenter_brings_nothing_back_by_itself(make_scene: MakeScene) -> None:
    scene = make_scene(_marked({"karpenter.sh/nodepool": "gpu"}), autoscaler="Karpenter")
    page = scene.page(scene.propose("replace"))
    assert "Karpenter made this node: nothing comes back by itself" in page
    assert "makes another machine only when pods wait for one" in page
    assert "20 to 30 minutes" not in page


@pytest.mark.parametrize("way", ["label"])
def test_a_label_does_nothing_without_automatic_recovery(make_scene: MakeScene, way: str) -> None:
    scene = make_scene(cluster_of("four_nodes"), node_recovery="None")
    page = scene.page(scene.propose("replace", way=way))
    assert "so the label would do nothing" in page
    assert "by the node’s health label" in page


def test_patching_lifts_cordons_and_a_message_may_be_old(make_scene: MakeScene) -> None:
    scene = make_scene(cluster_of("four_nodes"))
    assert scene.sagemaker is not None
    scene.sagemaker.node(INSTANCE).message = "Instance failed once"
    scene.sagemaker.cluster.groups["gpu"].patching = "WhenIdle"
    page = scene.page(scene.service.proposal()["id"], role="operator")
    assert "AutoPatch of group gpu is WhenIdle" in page
    assert "it lifts cordons when it is done. Our taint stays" in page
    assert re.search(r"may be about an earlier failure: Instance failed once", page)
