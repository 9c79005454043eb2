"""What does an object look like after a patch of each of the four kinds?"""

import copy
import json
from collections.abc import Callable
from typing import Any

import yaml

from tests.doubles.kubernetes.answers import Json, bad_request, rejected_patch, unsupported_patch

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
KINDS = (STRATEGIC, MERGE, JSON_PATCH, APPLY)

# Lists that a strategic patch merges by a key; all others, taints among them, are atomic.
_MERGE_KEYS = {
    ("status", "conditions"): "type",
    ("status", "addresses"): "type",
    ("spec", "containers"): "name",
    ("metadata", "ownerReferences"): "uid",
}


def read_patch(content_type: str, body: bytes) -> Any:
    """Parse a patch; raise 415 for an unknown kind and 400 for what cannot be read."""
    if content_type not in KINDS:
        raise unsupported_patch()
    try:
        patch = yaml.safe_load(body) if content_type == APPLY else json.loads(body)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request("unexpected EOF" if _is_cut(error) else str(error)) from error
    wanted = list if content_type == JSON_PATCH else dict
    if not isinstance(patch, wanted):
        raise bad_request(f"json: cannot unmarshal into Go value of type {wanted.__name__}")
    return patch


def _is_cut(error: Exception) -> bool:
    return isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip())


def apply_patch(content_type: str, obj: Json, patch: Any) -> Json:
    """Give a patched copy of an object (server-side apply merges like a strategic patch)."""
    changed = copy.deepcopy(obj)
    if content_type == JSON_PATCH:
        return _json_patch(changed, patch)
    merge_keys = {} if content_type == MERGE else _MERGE_KEYS
    _merge(changed, patch, (), merge_keys)
    return changed


def _merge(
    target: Json, patch: Json, path: tuple[str, ...], keys: dict[tuple[str, str], str]
) -> None:
    for key, value in patch.items():
        here = (*path, key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            _merge(target[key], value, here, keys)
        elif isinstance(value, list) and here[-2:] in keys:
            target[key] = _merge_list(target.get(key) or [], value, keys[here[-2:]])  # type: ignore[index]
        else:
            target[key] = copy.deepcopy(value)


def _merge_list(present: list[Json], patch: list[Json], by: str) -> list[Json]:
    """Merge items with the same key; new ones come first, as the real server puts them."""
    result = [dict(item) for item in present]
    added: list[Json] = []
    for item in patch:
        match = next((one for one in result if one.get(by) == item.get(by)), None)
        if item.get("$patch") == "delete":
            result = [one for one in result if one is not match]
        elif match is not None:
            match.update(item)
        else:
            added.append(dict(item))
    return added + result


def _json_patch(obj: Json, operations: list[Json]) -> Json:
    document: Any = obj
    for one in operations:
        try:
            _OPERATIONS[one["op"]](document, one)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise rejected_patch() from error
    return obj


def _steps(pointer: str) -> list[str]:
    if not pointer.startswith("/"):
        raise ValueError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _down(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _add(document: Any, one: Json) -> None:
    *way, last = _steps(one["path"])
    parent = _down(document, way)
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else int(last), one["value"])
    else:
        parent[last] = one["value"]


def _remove(document: Any, one: Json) -> None:
    *way, last = _steps(one["path"])
    parent = _down(document, way)
    parent.pop(int(last) if isinstance(parent, list) else last)


def _replace(document: Any, one: Json) -> None:
    _down(document, _steps(one["path"]))
    *way, last = _steps(one["path"])
    parent = _down(document, way)
    parent[int(last) if isinstance(parent, list) else last] = one["value"]


def _test(document: Any, one: Json) -> None:
    if _down(document, _steps(one["path"])) != one["value"]:
        raise ValueError(one["path"])


def _move(document: Any, one: Json) -> None:
    value = _down(document, _steps(one["from"]))
    _remove(document, {"path": one["from"]})
    _add(document, {"path": one["path"], "value": value})


def _copy(document: Any, one: Json) -> None:
    value = copy.deepcopy(_down(document, _steps(one["from"])))
    _add(document, {"path": one["path"], "value": value})


_OPERATIONS: dict[str, Callable[[Any, Json], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
    "move": _move,
    "copy": _copy,
}
