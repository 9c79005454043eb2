"""A node that others use too: is it said whose pods end, and asked for more than one click?"""

from __future__ import annotations

import re

import pytest

from tests.actions.fleet import NODES, pod
from tests.actions.service import Person
from tests.previews.conftest import MakeScene
from tests.previews.scene import NODE, Scene

WORDS = "end pods of vision"


@pytest.fixture
def scene(make_scene: MakeScene) -> Scene:
    """Give the shared node with its provider."""
    return make_scene()


def _approver(scene: Scene) -> Person:
    return scene.service.person("approver", "alice")


def _status(scene: Scene, proposal: str) -> str:
    found: str = scene.service.read(f"/proposals/{proposal}")["status"]
    return found


def _message(page: str) -> str:
    found = re.search(r'class="msg"[^>]*>(.*?)</', page, re.DOTALL)
    assert found, "no message on the page"
    return found.group(1)


def test_the_page_says_what_ends_and_what_is_lost(scene: Scene) -> None:
    page = scene.page(scene.propose("replace"))
    groups = re.findall(r'<tr class="group".*?<b><bdi>([\w-]+)</bdi></b>(.*?)</th>', page)
    assert [name for name, _ in groups] == ["vision", "research", "kube-system"]
    assert "another team’s" in groups[0][1]
    assert "the alarmed job" in groups[1][1]
    assert "system" in groups[2][1]
    assert "alarmed job, by its name" in page
    for name in ("vit-huge-0", "llama-953m-worker-1", "coredns-7d-abc", "karpenter-5f-xyz"):
        assert name in page
    # What comes with every node, and what has ended, is counted and not called lost.
    assert "nvidia-dcgm-abc" not in page
    assert "llama-953m-prepare-0" not in page
    assert "1 DaemonSet or static pod, 1 ended" in page
    assert "6 pods, 2 of other teams" in page
    assert "local NVMe disks included" in page
    assert "/mnt/nvme/cache" in page
    assert "2 checkpoints of llama-953m on the node’s own disks, the newest of step 28" in page
    assert "The newest on shared storage is of step 10." in page
    assert "the address does not tell whether they outlive the node" in page
    assert "The chance to replay step 30 on this GPU" in page


def test_a_reversible_action_is_one_click_and_loses_nothing(scene: Scene) -> None:
    proposal = scene.service.proposal()["id"]
    page = scene.page(proposal)
    assert "Would be lost" not in page
    assert "Type the node" not in page
    scene.approve(scene.service.person("operator", "bob"), proposal)
    scene.service.settled({"id": proposal})
    assert _status(scene, proposal) == "verified"


def test_name_and_words_are_asked_for_and_nothing_less_will_do(scene: Scene) -> None:
    proposal = scene.propose("replace")
    alice = _approver(scene)
    assert f"<bdi>{WORDS}</bdi>" in alice.get(f"/proposals/{proposal}")
    for typed in ({}, {"node": NODE}, {"words": WORDS}, {"node": NODES[0], "words": WORDS}):
        said = _message(scene.approve(alice, proposal, **typed))
        assert "Nothing was approved" in said
        assert _status(scene, proposal) == "proposed"
    assert scene.sagemaker is not None
    assert scene.sagemaker.calls == []
    scene.approve(alice, proposal, node=NODE, words="  End  pods of VISION ")
    assert _status(scene, proposal) == "accepted"
    assert len(scene.sagemaker.calls) == 1


def test_a_form_without_a_look_approves_nothing(scene: Scene) -> None:
    proposal = scene.propose("replace")
    said = _message(scene.approve(_approver(scene), proposal, node=NODE, words=WORDS, seen=""))
    assert said == "Nothing was approved: the preview has to be looked at first."
    assert _status(scene, proposal) == "proposed"


def test_pods_that_came_since_the_look_need_a_new_look(scene: Scene) -> None:
    proposal, alice = scene.propose("replace"), _approver(scene)
    here = f"/proposals/{proposal}"
    seen = alice.form(here)["seen"]
    scene.kubernetes.put("pods", pod("render-1", "films"))
    said = _message(
        scene.approve(alice, proposal, node=NODE, words=WORDS, seen=seen.replace("&#34;", '"'))
    )
    assert "Since you looked: 1 pod came to the node: films/render-1." in said
    assert _status(scene, proposal) == "proposed"
    assert "end pods of films, vision" in alice.get(here)


def test_a_control_plane_node_has_no_button(scene: Scene) -> None:
    proposal = scene.propose("replace", node=NODES[3])
    page = scene.page(proposal)
    assert "is a control-plane node: it is never changed from here" in page
    assert "Type the node" not in page
    assert "Reject" in page
    scene.approve(_approver(scene), proposal, node=NODES[3])
    assert _status(scene, proposal) == "proposed"
    assert scene.sagemaker is not None
    assert scene.sagemaker.calls == []


def test_an_operator_sees_it_and_may_reject_only(scene: Scene) -> None:
    page = scene.page(scene.propose("replace"), role="operator")
    assert "needs the role approver; you can reject it" in page
    assert "Type the node" not in page
    assert "another team’s" in page
