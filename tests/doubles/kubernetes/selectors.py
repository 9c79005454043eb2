"""Which objects do a labelSelector and a fieldSelector pick?"""

import re
from collections.abc import Callable
from typing import Any

from tests.doubles.kubernetes.answers import Json, bad_request

Test = Callable[[Json], bool]

_KEY = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_EQUAL = re.compile(rf"({_KEY})\s*(==|!=|=)\s*([-A-Za-z0-9_.]*)")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")

_FIELDS = {
    "nodes": ("metadata.name", "spec.unschedulable"),
    "pods": ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase",
             "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    "events": ("metadata.name", "metadata.namespace", "involvedObject.kind",
               "involvedObject.name", "involvedObject.namespace", "involvedObject.uid",
               "involvedObject.apiVersion", "reason", "type", "source"),
}  # fmt: skip


def labels_test(selector: str) -> Test:
    """Turn a labelSelector into a test; raise 400 for one that cannot be read."""
    tests = [_label_test(part.strip()) for part in _split(selector)] if selector.strip() else []
    return lambda obj: all(test(obj.get("metadata", {}).get("labels") or {}) for test in tests)


def _split(selector: str) -> list[str]:
    """Split at commas outside of parentheses."""
    return re.split(r",(?![^(]*\))", selector)


def _label_test(part: str) -> Test:
    if found := _SET.fullmatch(part):
        key, how, listed = found.groups()
        values = {one.strip() for one in listed.split(",")}
        if how == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.fullmatch(part):
        key, how, value = found.groups()
        if how == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.fullmatch(part):
        absent, key = found.groups()
        return lambda labels: (key in labels) != bool(absent)
    token = re.match(r"==|!=|=|[^\w\s]", part)
    raise bad_request(
        f"found '{token.group() if token else part}', expected: !, identifier, or 'end of string'"
    )


def fields_test(selector: str, store: str) -> Test:
    """Turn a fieldSelector into a test; raise 400 for a field that cannot be selected by."""
    tests = [_field_test(part, store) for part in selector.split(",") if part]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(part: str, store: str) -> Test:
    found = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", part)
    if not found:
        raise bad_request(f"invalid field selector: {part}")
    path, how, value = found.groups()
    if path not in _FIELDS.get(store, ("metadata.name", "metadata.namespace")):
        raise bad_request(f"field label not supported: {path}")
    return lambda obj: (_text_at(obj, path) == value) == (how != "!=")


def _text_at(obj: Json, path: str) -> str:
    """Read a field the way a selector sees it: missing is empty, but `unschedulable` is false."""
    value: Any = obj
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if path == "spec.unschedulable":
        return "true" if value else "false"
    if path == "source":
        return str((obj.get("source") or {}).get("component") or "")
    return "" if value is None else str(value)
