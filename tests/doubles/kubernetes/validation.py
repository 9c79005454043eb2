"""Which objects does the server find invalid, and with which words?"""

import re
from typing import Any

from tests.doubles.kubernetes.answers import ApiError, Cause, Json, bad_request, failure, invalid
from tests.doubles.kubernetes.resources import Resource

_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_DNS}(\.{_DNS})*")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
    "'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LABEL_LIMIT = 63
_ANNOTATIONS_LIMIT = 256 * 1024
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_SPEC = frozenset(
    {"podCIDR", "podCIDRs", "providerID", "unschedulable", "taints", "configSource", "externalID"}
)
_NODE_TYPES: dict[str, type] = {"unschedulable": bool, "taints": list, "providerID": str}


def check_object(resource: Resource, obj: Json) -> None:
    """Raise 422 with every cause, as far as the rules here know them."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    causes = [*_check_name(name), *_check_labels(metadata.get("labels") or {})]
    causes += _check_annotations(metadata.get("annotations") or {})
    if resource.store == "nodes":
        causes += _check_taints(obj.get("spec", {}).get("taints") or [])
    if causes:
        raise invalid(resource.kind, name, causes)


def _check_name(name: str) -> list[Cause]:
    if _SUBDOMAIN.fullmatch(name) and len(name) <= 253:
        return []
    return [Cause("metadata.name", f'Invalid value: "{name}": {_NAME_WORDS}')]


def _check_labels(labels: Json) -> list[Cause]:
    causes = []
    for key, value in labels.items():
        if not _qualified(key):
            causes.append(Cause("metadata.labels", f'Invalid value: "{key}": not a valid key'))
        if len(value) > _LABEL_LIMIT:
            words = f"must be no more than {_LABEL_LIMIT} characters"
            causes.append(Cause("metadata.labels", f'Invalid value: "{value}": {words}'))
        elif not _LABEL_VALUE.fullmatch(value):
            causes.append(Cause("metadata.labels", f'Invalid value: "{value}": {_LABEL_WORDS}'))
    return causes


def _qualified(key: str) -> bool:
    prefix, _, name = key.rpartition("/")
    if prefix and not (_SUBDOMAIN.fullmatch(prefix) and len(prefix) <= 253):
        return False
    return bool(_KEY_NAME.fullmatch(name)) and len(name) <= _LABEL_LIMIT


def _check_annotations(annotations: Json) -> list[Cause]:
    causes = [
        Cause("metadata.annotations", f'Invalid value: "{key}": not a valid key')
        for key in annotations
        if not _qualified(key.lower())
    ]
    if sum(len(k) + len(v.encode()) for k, v in annotations.items()) > _ANNOTATIONS_LIMIT:
        causes.append(Cause("metadata.annotations", "Too long: must have at most 262144 bytes"))
    return causes


def _check_taints(taints: list[Json]) -> list[Cause]:
    causes = []
    seen = set()
    for index, taint in enumerate(taints):
        where = f"metadata.taints[{index}]"
        key, effect = str(taint.get("key", "")), taint.get("effect")
        if not _qualified(key):
            causes.append(Cause(f"{where}.key", f'Invalid value: "{key}": not a valid key'))
        if effect not in _TAINT_EFFECTS:
            words = f'Unsupported value: "{effect or ""}": supported values: "NoSchedule", ...'
            causes.append(Cause(f"{where}.effect", words, "FieldValueNotSupported"))
        if not _LABEL_VALUE.fullmatch(str(taint.get("value", ""))):
            causes.append(Cause(f"{where}.value", f'Invalid value: "{taint.get("value")}"'))
        if (key, effect) in seen:
            causes.append(Cause(where, "Duplicate value", "FieldValueDuplicate"))
        seen.add((key, effect))
    return causes


def check_types(obj: Json, *, patch: bool) -> None:
    """Raise what a server answers that cannot decode the object: 422 for a patch, else 400."""
    wrong = _wrong_type(obj)
    if wrong is None:
        return
    if patch:
        raise _bad_patch(f"Invalid value: {wrong}")
    raise bad_request(f'{obj.get("kind")} in version "v1" cannot be handled as a Node: {wrong}')


def _bad_patch(words: str) -> ApiError:
    causes = [{"reason": "FieldValueInvalid", "message": words, "field": "patch"}]
    return failure(422, "Invalid", f' "" is invalid: patch: {words}', {"causes": causes})


def _wrong_type(obj: Json) -> str | None:
    metadata = obj.get("metadata")
    for field in ("labels", "annotations"):
        found: Any = (metadata or {}).get(field) if isinstance(metadata, dict) else None
        if found is not None and not (
            isinstance(found, dict) and all(isinstance(one, str) for one in found.values())
        ):
            return f"v1.ObjectMeta.{field}: expected strings"
    spec = obj.get("spec") or {}
    if not isinstance(spec, dict):
        return "v1.NodeSpec: expected an object"
    for field, kind in _NODE_TYPES.items():
        if spec.get(field) is not None and not isinstance(spec[field], kind):
            return f"v1.NodeSpec.{field}: expected {kind.__name__}, found {spec[field]!r}"
    taints = spec.get("taints") or []
    return None if all(isinstance(t, dict) for t in taints) else "v1.Taint: expected objects"


def prune(resource: Resource, obj: Json, *, strict: bool, patch: bool) -> None:
    """Drop unknown fields of a node's spec silently, or refuse them where asked to be strict."""
    spec = obj.get("spec")
    if resource.store != "nodes" or not isinstance(spec, dict):
        return
    unknown = sorted(set(spec) - _NODE_SPEC)
    if unknown and strict:
        words = ", ".join(f'unknown field "spec.{field}"' for field in unknown)
        if patch:
            raise _bad_patch(f"strict decoding error: {words}")
        raise bad_request(f"strict decoding error: {words}")
    for field in unknown:
        del spec[field]
