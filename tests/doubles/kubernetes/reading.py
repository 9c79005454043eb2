"""How are objects read, listed page by page, and watched?"""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.doubles.kubernetes.answers import Answer, ApiError, Json, bad_request, expired
from tests.doubles.kubernetes.asking import Asked
from tests.doubles.kubernetes.events import give_out
from tests.doubles.kubernetes.resources import Resource, Target
from tests.doubles.kubernetes.selectors import Test, fields_test, labels_test
from tests.doubles.kubernetes.store import Change, Store
from tests.doubles.kubernetes.tables import table, wants_table

_LONGEST_WATCH_S = 1800.0


@dataclass
class Stream:
    """An answer that goes on: a watch's events, each a JSON object."""

    events: Iterator[Json]


def typed(resource: Resource, obj: Json) -> Json:
    """Give a stored object as it is answered: in its group's form, with kind and version."""
    shown = give_out(resource, obj) if resource.store == "events" else obj
    bare = {key: value for key, value in shown.items() if key not in ("kind", "apiVersion")}
    return {"kind": resource.kind, "apiVersion": resource.api_version, **bare}


def read(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a GET of one object."""
    obj = store.get(target.resource, target.namespace, target.name)
    if wants_table(asked.accept):
        version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return Answer(200, table(target.resource.store, [obj], version))
    return Answer(200, typed(target.resource, obj))


def _tests(target: Target, asked: Asked) -> list[Test]:
    return [
        labels_test(asked.query.get("labelSelector", "")),
        fields_test(asked.query.get("fieldSelector", ""), target.resource.store),
    ]


def list_all(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a GET of a list; a later page shows the objects as they are then."""
    tests = _tests(target, asked)
    limit = int(asked.query.get("limit") or 0)
    with store.lock:
        version, start = store.version, ""
        if token := asked.query.get("continue"):
            version, start = _read_token(token)
            if version < store.oldest:
                raise expired(version, store.oldest)
        found = [
            one
            for one in store.list(target.resource, target.namespace)
            if _place(one) >= start and all(test(one) for test in tests)
        ]
    metadata: Json = {"resourceVersion": str(version)}
    if limit and len(found) > limit:
        metadata["continue"] = _write_token(version, _place(found[limit - 1]) + "\0")
        if not (asked.query.get("labelSelector") or asked.query.get("fieldSelector")):
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return Answer(200, _listed(target.resource, found, metadata, asked))


def _listed(resource: Resource, found: list[Json], metadata: Json, asked: Asked) -> Json:
    if wants_table(asked.accept):
        return table(resource.store, found, metadata)
    items = []
    for one in found:
        shown = typed(resource, one)
        del shown["kind"], shown["apiVersion"]
        items.append(shown)
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": items,
    }


def _place(obj: Json) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _write_token(version: int, start: str) -> str:
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": start}
    text = json.dumps(token, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        padded = token + "=" * (-len(token) % 4)
        parsed = json.loads(base64.urlsafe_b64decode(padded))
        return int(parsed["rv"]), str(parsed["start"])
    except (ValueError, KeyError, TypeError) as error:
        words = f"invalid continue token: continue key is not valid: {error}"
        raise bad_request(words) from error


def watch(store: Store, target: Target, asked: Asked) -> Stream:
    """Answer a watch."""
    asked_version = asked.query.get("resourceVersion", "")
    if asked_version and not asked_version.isdigit():
        raise bad_request(f'Invalid value: "{asked_version}": not a resourceVersion')
    seconds = float(asked.query.get("timeoutSeconds") or _LONGEST_WATCH_S)
    tests = _tests(target, asked)
    return Stream(_events(store, target, asked, tests, int(asked_version or 0), seconds))


def _events(
    store: Store,
    target: Target,
    asked: Asked,
    tests: list[Test],
    version: int,
    seconds: float,
) -> Iterator[Json]:
    resource, deadline = target.resource, time.monotonic() + seconds
    if version == 0:
        with store.lock:
            present = store.list(resource, target.namespace)
            version = store.version
        for obj in present:
            if all(test(obj) for test in tests):
                yield {"type": "ADDED", "object": typed(resource, obj)}
    elif version < store.oldest:
        # Like the real server: the refusal comes as an event, in an answer that began with 200.
        yield {"type": "ERROR", "object": _body(expired(version, store.oldest))}
        return
    while (left := deadline - time.monotonic()) > 0:
        for change in store.since(resource, target.namespace, version):
            version = change.version
            event = _seen_through(change, tests)
            if event is not None:
                yield {"type": event[0], "object": typed(resource, event[1])}
        store.wait_beyond(version, min(left, 0.25))
    if asked.query.get("allowWatchBookmarks") in ("1", "true") and version <= store.version:
        mark = {"metadata": {"resourceVersion": str(store.version), "creationTimestamp": None}}
        yield {"type": "BOOKMARK", "object": typed(resource, mark)}


def _seen_through(change: Change, tests: list[Test]) -> tuple[str, Json] | None:
    """Give the change as one sees it who looks through selectors; None where nothing is seen."""
    after = change.type != "DELETED" and all(test(change.obj) for test in tests)
    before = change.before is not None and all(test(change.before) for test in tests)
    if change.type == "ADDED":
        before = False
    if not (before or after):
        return None
    name = {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}
    return name[before, after], change.obj


def _body(error: ApiError) -> Json:
    assert isinstance(error.answer.body, dict)
    return error.answer.body
