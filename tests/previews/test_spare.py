"""Does the look for free nodes stay short in a cluster of any size, and short-lived?"""

from __future__ import annotations

import copy
from typing import Any

from app.actions.preview import preview
from app.actions.previewing.spare import LOOKED_AT, NODES
from app.store import ids, proposals
from tests.previews.conftest import MakeScene
from tests.previews.scene import NODE, Scene, cluster_of

GPUS = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}


def _large(number: int, busy: int) -> dict[str, Any]:
    """Give a cluster of many nodes, the first ones of which have GPU pods."""
    found = cluster_of("four_nodes")
    model = found["nodes"][0]
    for n in range(number):
        one = copy.deepcopy(model)
        one["metadata"] |= {"name": f"node-{n:05d}", "uid": f"uid-{n}"}
        found["nodes"].append(one)
    found["pods"] = [
        {
            "metadata": {"name": f"p{n}", "namespace": "vision"},
            "spec": {**GPUS, "nodeName": f"node-{n:05d}"},
            "status": {"phase": "Running"},
        }
        for n in range(busy)
    ]
    return found


def _look(scene: Scene) -> Any:
    with scene.service.context.store.reading() as connection:
        row = proposals.get(connection, ids.read(scene.service.proposal()["id"]))
    assert row is not None
    return preview(scene.service.context, row).spare


def test_a_look_is_bounded_and_kept_for_a_while(make_scene: MakeScene) -> None:
    scene = make_scene(_large(NODES + 30, 4), provider=False)
    before = len(scene.kubernetes.requests)
    found = _look(scene)
    asked = [one for one in scene.kubernetes.requests[before:] if one.path == "/api/v1/pods"]
    assert len(asked) <= LOOKED_AT + 1  # and the pods of the node itself
    assert found.looked_at <= LOOKED_AT
    assert not found.whole
    assert found.check.words.startswith("Spare capacity: at least ")
    middle = len(scene.kubernetes.requests)
    assert _look(scene).free == found.free
    again = [one.query for one in scene.kubernetes.requests[middle:] if one.path == "/api/v1/pods"]
    assert again == [{"fieldSelector": f"spec.nodeName={NODE}", "limit": "250"}]


def test_a_node_with_gpu_pods_is_not_free_and_the_node_itself_is_no_spare(
    make_scene: MakeScene,
) -> None:
    scene = make_scene(_large(2, 1), provider=False)
    found = _look(scene)
    assert found.whole
    assert NODE not in found.free
    assert "node-00000" not in found.free
    assert len(found.free) == 4
    assert found.check.words == (
        "Spare capacity: 4 of 5 other nodes of type ml.p5.48xlarge free of GPU pods"
    )
