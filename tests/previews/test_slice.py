"""A host of a slice takes the whole slice with it: is that told, with the pods of the others?"""

from __future__ import annotations

from typing import Any

from app.cluster.label_orders import TPU
from tests.actions.fleet import NODES, pod
from tests.previews.conftest import MakeScene
from tests.previews.scene import NODE, cluster_of
from witness.rules.slices import CHIPS, POOL, TOPOLOGY


def _slice() -> dict[str, Any]:
    """Give four hosts of one slice of 16 chips, with pods of two teams on them."""
    found = cluster_of("four_nodes")
    for one in found["nodes"]:
        one["metadata"]["labels"] |= {POOL: "tpu-a", TOPOLOGY: "4x4", TPU: "tpu-v5p"}
        one["status"]["allocatable"] = {CHIPS: "4"}
    found["pods"] = [
        pod("llama-953m-worker-1", "research"),
        pod("render-0", "films", on=NODES[2]),
        pod("render-1", "films", on=NODES[3]),
    ]
    return found


def test_a_report_of_one_host_ends_the_work_on_all(make_scene: MakeScene) -> None:
    scene = make_scene(_slice(), provider=False)
    page = scene.page(scene.propose("replace"))  # no way is chosen: the node asks for it
    assert "It is one of 4 hosts of a slice, node pool tpu-a" in page
    assert "render-0" in page
    assert "render-1" in page
    assert "<bdi>end pods of films</bdi>" in page
    assert "by reporting the host" in page
    assert "20 to 30 minutes" not in page


def test_another_action_is_told_of_the_slice_and_ends_one_host(make_scene: MakeScene) -> None:
    scene = make_scene(_slice(), provider=False)
    page = scene.page(scene.service.proposal()["id"], role="operator")
    assert "It is one of 4 hosts of a slice" in page
    assert "render-0" not in page


def test_hosts_that_are_not_read_are_not_taken_for_empty(make_scene: MakeScene) -> None:
    scene = make_scene(_slice(), provider=False)
    proposal = scene.propose("replace", way="gke_host")
    scene.kubernetes.set_fault("GET /api/v1/pods", status=500, skip=1)
    page = scene.page(proposal)
    assert "Pods on 3 more nodes that go with it: not read." in page
    assert "<bdi>pods not known</bdi>" in page
    assert NODE in page
