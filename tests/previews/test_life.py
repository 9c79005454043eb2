"""Does the page tell the life of an action: its stages, what is seen, which machine came after?"""

from __future__ import annotations

import re

from app.actions import looking
from app.store import ids
from tests.actions.fleet import LAST_GPU_OF_SUSPECT, envelope
from tests.actions.service import Person
from tests.previews.conftest import MakeScene
from tests.previews.scene import INSTANCE, NODE, Scene, cluster_of


def _stages(page: str) -> list[tuple[str, str]]:
    listed = re.search(r'<ol class="stages.*?</ol>', page, re.DOTALL)
    assert listed
    return re.findall(r'<li class="(\w+)".*?<b>(\w+)</b>', listed.group(0))


def _fragment(person: Person, proposal: str, stamp: str = "") -> tuple[int, str, str]:
    answer = person.http.get(f"/fragment/proposals/{proposal}", params={"stamp": stamp})
    return answer.status_code, answer.headers.get("X-Stamp", ""), answer.text


def _look(scene: Scene, proposal: str, minutes: float) -> None:
    assert scene.sagemaker is not None
    scene.sagemaker.advance(minutes=minutes)
    looking.look_again(scene.service.context, ids.read(proposal))


def _runs_on_the_new_machine(instance: str) -> dict[str, object]:
    ranks = [{"rank": 0, "node": f"hyperpod-{instance}", "instance_id": instance,
              "gpu_uuid": LAST_GPU_OF_SUSPECT}]  # fmt: skip
    return envelope("rank_map", "burn-in", "2026-03-05T10:00:00Z", world_size=1, ranks=ranks)


def test_a_replacement_is_told_from_the_click_to_the_new_gpus(make_scene: MakeScene) -> None:
    scene = make_scene(cluster_of("four_nodes"))
    proposal, alice = scene.propose("replace"), scene.service.person("approver", "alice")
    here = f"/proposals/{proposal}"
    page = scene.approve(alice, proposal, node=NODE, reason="two witnesses agree")
    assert _stages(page) == [
        ("done", "Proposed"), ("done", "Approved"), ("done", "Sent"), ("now", "Accepted"),
        ("ahead", "Verified"),
    ]  # fmt: skip
    assert "two witnesses agree" in page
    assert "20 to 30 minutes as a rule; said to be stuck after 90" in page
    assert "Read it again now" in page
    assert "Propose it again" not in page
    assert f'data-live="/fragment/proposals/{proposal}"' in page
    status, stamp, text = _fragment(alice, proposal)
    assert (status, "Its life" in text) == (200, True)
    assert _fragment(alice, proposal, stamp)[0] == 204

    _look(scene, proposal, 3)
    assert _fragment(alice, proposal, stamp)[0] == 200
    waits = alice.get(here)
    assert ("now", "Waiting") in _stages(waits)
    assert "Seen last" in waits

    _look(scene, proposal, 60)
    done = alice.get(here)
    assert _stages(done)[-1] == ("ended", "Verified")
    assert "The machine that came after it" in done
    assert "not known until a job runs on it" in done
    assert "data-live=" not in done
    assert scene.sagemaker is not None
    new = scene.sagemaker.cluster.nodes
    (instance,) = [one for one in new if one not in (INSTANCE, *_old(scene))]
    assert instance in done
    assert INSTANCE in done

    scene.service.post(_runs_on_the_new_machine(instance))
    known = alice.get(here)
    assert LAST_GPU_OF_SUSPECT in known
    assert "not known until a job runs on it" not in known
    assert len(scene.sagemaker.calls) == 1


def _old(scene: Scene) -> tuple[str, ...]:
    return tuple(
        one["metadata"]["name"].removeprefix("hyperpod-")
        for one in cluster_of("four_nodes")["nodes"]
    )


def test_what_was_rejected_can_be_asked_for_again_and_what_nobody_knows_only_after_a_look(
    make_scene: MakeScene,
) -> None:
    scene = make_scene(cluster_of("four_nodes"))
    assert scene.sagemaker is not None
    alice = scene.service.person("approver", "alice")
    first = scene.propose("replace")
    alice.press(f"/proposals/{first}/reject", **alice.form(f"/proposals/{first}"), reason="wait")
    rejected = alice.get(f"/proposals/{first}")
    assert _stages(rejected)[-1] == ("ended", "Rejected")
    assert "Propose it again" in rejected
    scene.sagemaker.answer_with("BatchReplaceClusterNodes", {"status": 500, "body": {}})
    second = scene.propose("replace")
    page = scene.approve(alice, second, node=NODE)
    row = scene.service.read(f"/proposals/{second}")
    assert row["status"] == "unknown", row
    assert "Propose it again" not in page
    assert "Read it again now" in page
    again = alice.press(f"/proposals/{second}/read-again", f"/proposals/{second}")
    assert "Read by alice" in again
    assert "Propose it again" in again
    assert len(scene.sagemaker.calls) == 1
