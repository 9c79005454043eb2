"""Which manager wrote which field, and does a server-side apply take one from another?"""

import copy
from typing import Any

from tests.doubles.kubernetes.answers import ApiError, Json, failure

Path = tuple[str, ...]

# The server writes these itself; nobody owns them.
_SYSTEM = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation",
     "managedFields", "selfLink"}
)  # fmt: skip
_KEYED_LISTS = {"conditions": "type", "addresses": "type", "containers": "name"}


def leaves(obj: Json) -> dict[Path, Any]:
    """Give every field that can be owned, with its value; an unkeyed list is one field."""
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        if key == "metadata":
            own = {k: v for k, v in value.items() if k not in _SYSTEM}
            _collect(own, ("f:metadata",), found)
        elif key not in ("kind", "apiVersion"):
            _collect({key: value}, (), found)
    return found


def _collect(value: Json, path: Path, found: dict[Path, Any]) -> None:
    for key, item in value.items():
        here = (*path, f"f:{key}")
        if isinstance(item, dict) and item:
            _collect(item, here, found)
        elif isinstance(item, list) and key in _KEYED_LISTS:
            by = _KEYED_LISTS[key]
            for one in item:
                _collect(one, (*here, f'k:{{"{by}":"{one.get(by)}"}}'), found)
        else:
            found[here] = item


def _owned(entry: Json) -> set[Path]:
    found: set[Path] = set()

    def walk(node: Json, path: Path) -> None:
        for key, item in node.items():
            if item:
                walk(item, (*path, key))
            elif key != ".":
                found.add((*path, key))

    walk(entry["fieldsV1"], ())
    return found


def _fields(paths: set[Path]) -> Json:
    tree: Json = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def record_update(before: Json, after: Json, manager: str, api_version: str, now: str) -> None:
    """Give the fields that changed to the manager and take them from all others."""
    old, new = leaves(before), leaves(after)
    changed = {path for path, value in new.items() if old.get(path, ...) != value}
    removed = set(old) - set(new)
    entries = copy.deepcopy(before.get("metadata", {}).get("managedFields") or [])
    _share(after, entries, (manager, "Update", api_version), changed, changed | removed, now)


def record_apply(
    before: Json, after: Json, patch: Json, manager: str, api_version: str, now: str, force: bool
) -> None:
    """Give the fields of an applied configuration to its manager; raise 409 on a conflict."""
    old, wanted = leaves(before), leaves(patch)
    entries = copy.deepcopy(before.get("metadata", {}).get("managedFields") or [])
    taken = {path for path, value in wanted.items() if old.get(path, ...) != value}
    clashes = [
        (entry["manager"], entry["apiVersion"], path)
        for entry in entries
        if (entry["manager"], entry["operation"]) != (manager, "Apply")
        for path in sorted(_owned(entry) & taken)
    ]
    if clashes and not force:
        raise _apply_conflict(clashes)
    _share(after, entries, (manager, "Apply", api_version), set(wanted), taken, now)


def _apply_conflict(clashes: list[tuple[str, str, Path]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}" using {version}',
            "field": "".join("." + step.removeprefix("f:") for step in path),
        }
        for manager, version, path in clashes
    ]
    words = f"{causes[0]['message']}: {causes[0]['field']}"
    plural = "" if len(causes) == 1 else "s"
    message = f"Apply failed with {len(causes)} conflict{plural}: {words}"
    return failure(409, "Conflict", message, {"causes": causes})


def _share(
    after: Json,
    entries: list[Json],
    who: tuple[str, str, str],
    gained: set[Path],
    lost: set[Path],
    now: str,
) -> None:
    """Write the list of managers anew."""
    result = []
    mine: Json | None = None
    for entry in entries:
        owned = _owned(entry)
        if (entry["manager"], entry["operation"], entry["apiVersion"]) == who:
            kept = gained if who[1] == "Apply" else (owned - lost) | gained
            if gained or lost & owned:
                entry["time"] = now
            mine = entry
        else:
            kept = owned - lost
        entry["fieldsV1"] = _fields(kept)
        if kept:
            result.append(entry)
    if mine is None and gained:
        result.append(
            {
                "manager": who[0],
                "operation": who[1],
                "apiVersion": who[2],
                "time": now,
                "fieldsType": "FieldsV1",
                "fieldsV1": _fields(gained),
            }
        )
    after["metadata"].pop("managedFields", None)
    if result:
        after["metadata"]["managedFields"] = result
