"""Does the double answer what a real API server answered?"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.replay import FIRST_VERSION, OTHER_TOKEN, Replay, recording
from tests.doubles.kubernetes import NOTHING, KubernetesDouble, User


@pytest.fixture(scope="module")
def replayed() -> Iterator[list[tuple[dict[str, Any], int, Any]]]:
    """Play the whole recording once, in order, and keep all answers."""
    users = {OTHER_TOKEN: User("sdcdash", NOTHING)}
    results = []
    with KubernetesDouble(users=users, first_version=FIRST_VERSION) as double:
        replay = Replay(double)
        for one in recording():
            if one["note"] == "patch while watched" and one["request"]["method"] == "GET":
                continue  # It ran beside the patch: see the test of the watch.
            status, body = replay.send(one["request"], one["note"])
            replay.learn(one["response"]["body"], body)
            results.append((one, status, body))
        yield results


def test_every_status_is_that_of_the_real_server(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    wrong = [
        (one["note"], one["response"]["status"], status, body)
        for one, status, body in replayed
        if status != one["response"]["status"]
    ]
    assert wrong == []
    assert len(replayed) > 130


def test_every_refusal_has_the_reason_and_details_of_the_real_server(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    compared = 0
    for one, _, body in replayed:
        recorded = one["response"]["body"]
        if not isinstance(recorded, dict) or recorded.get("status") != "Failure":
            continue
        compared += 1
        assert isinstance(body, dict), one["note"]
        for part in ("kind", "apiVersion", "status", "reason", "code"):
            assert body.get(part) == recorded.get(part), (one["note"], part)
        theirs, ours = recorded.get("details") or {}, body.get("details") or {}
        assert ours.get("name") == theirs.get("name"), one["note"]
        assert ours.get("kind") == theirs.get("kind"), one["note"]
        causes = {(c.get("field"), c.get("reason")) for c in theirs.get("causes", ())}
        assert {(c.get("field"), c.get("reason")) for c in ours.get("causes", ())} == causes, one
    assert compared >= 40


# The real server quotes its decoder's place in the text, or uids of its own.
WORDS_OF_ITS_OWN = (
    "wrong type",
    "bad continue",
    "label with a colon",
    "label of 64 characters",
    "uid precondition",
    "event eventTime=2026",
    "microsecond 0",
)


def test_refusals_use_the_words_of_the_real_server(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    compared = 0
    for one, _, body in replayed:
        recorded = one["response"]["body"]
        if not isinstance(recorded, dict) or recorded.get("status") != "Failure":
            continue
        if any(words in one["note"] for words in WORDS_OF_ITS_OWN):
            continue
        compared += 1
        assert body["message"] == recorded["message"], one["note"]
    assert compared > 25


def test_a_micro_time_is_refused_with_the_layout_that_it_misses(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    notes = [
        body["message"]
        for one, status, body in replayed
        if "eventTime=2026" in one["note"] and status == 400
    ]
    assert len(notes) == 3
    for message in notes:
        assert '"2006-01-02T15:04:05.000000Z07:00": cannot parse "' in message


def _plain(value: Any) -> Any:
    """Leave out what is made anew each time, and managers, which are compared by themselves."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    made_anew: tuple[str, ...] = (
        "uid",
        "creationTimestamp",
        "managedFields",
        "time",
        "token",
        "continue",
    )
    made_anew += ("expirationTimestamp", "firstTimestamp", "lastTimestamp", "boundObjectRef")
    empty_parts = ("daemonEndpoints", "nodeInfo", "resourceVersion", "selfLink")
    return {
        key: _plain(one)
        for key, one in value.items()
        if key not in made_anew and key not in empty_parts and one is not None
    }


def _generated(value: dict[str, Any]) -> dict[str, Any]:
    metadata = value.get("metadata", {})
    if "generateName" in metadata:
        metadata["name"] = metadata["generateName"]
    return value


def test_objects_look_like_those_of_the_real_server(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    compared = 0
    for one, _, body in replayed:
        recorded = one["response"]["body"]
        if not isinstance(recorded, dict) or recorded.get("kind") not in ("Node", "Event"):
            continue
        compared += 1
        assert _generated(_plain(body)) == _generated(_plain(recorded)), one["note"]
    assert compared > 25


def test_lists_hold_the_same_objects_in_the_same_order(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    compared = 0
    for one, _, body in replayed:
        recorded = one["response"]["body"]
        if not isinstance(recorded, dict) or not isinstance(recorded.get("items"), list):
            continue
        compared += 1
        theirs, ours = recorded["metadata"], body["metadata"]
        assert ("continue" in ours) == ("continue" in theirs), one["note"]
        assert ours.get("remainingItemCount") == theirs.get("remainingItemCount"), one["note"]
        assert body["kind"] == recorded["kind"]
        names = [_generated(item)["metadata"]["name"] for item in recorded["items"]]
        assert [_generated(item)["metadata"]["name"] for item in body["items"]] == names
        assert all("kind" not in item for item in body["items"])
    assert compared > 12


def test_versions_count_like_those_of_the_real_server(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    """One for each write and none for a patch that changes nothing or is dry."""
    compared = 0
    for one, _, body in replayed:
        if one["note"].startswith("delete node"):
            break  # Custom resources were written before, which are left out here.
        recorded = one["response"]["body"]
        if isinstance(recorded, dict) and "resourceVersion" in recorded.get("metadata", {}):
            compared += 1
            version = recorded["metadata"]["resourceVersion"]
            assert body["metadata"]["resourceVersion"] == version, one["note"]
    assert compared >= 35


def _owners(node: dict[str, Any]) -> set[tuple[str, str, str]]:
    found = set()
    for entry in node["metadata"].get("managedFields", ()):
        spec = entry["fieldsV1"].get("f:spec", {})
        for name in ("f:unschedulable", "f:taints"):
            if name in spec:
                found.add((entry["manager"], entry["operation"], name))
    return found


def test_managers_of_the_cordon_are_those_of_the_real_server(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    compared = 0
    for one, _, body in replayed:
        recorded = one["response"]["body"]
        if not isinstance(recorded, dict) or recorded.get("kind") != "Node":
            continue
        compared += 1
        assert _owners(body) == _owners(recorded), one["note"]
    assert compared > 15


def test_reviews_and_watches_say_the_same(
    replayed: list[tuple[dict[str, Any], int, Any]],
) -> None:
    compared = 0
    for one, _, body in replayed:
        recorded = one["response"]["body"]
        if isinstance(recorded, dict) and "Review" in str(recorded.get("kind")):
            compared += 1
            assert _plain(body["status"]) == _plain(recorded["status"]), one["note"]
        if isinstance(recorded, dict) and "object" in recorded:
            compared += 1
            assert body["type"] == recorded["type"]
            assert _plain(body["object"]) == _plain(recorded["object"])
        if recorded is None and "watch" in one["request"]["path"]:
            compared += 1
            assert body is None
    assert compared >= 8
