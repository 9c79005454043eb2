"""How do objects come, change and go, with all that the server adds and refuses?"""

import copy
import secrets

from tests.doubles.kubernetes.answers import (
    Answer,
    Cause,
    Json,
    bad_request,
    conflict,
    invalid,
    status_body,
    wrong_uid,
)
from tests.doubles.kubernetes.asking import Asked
from tests.doubles.kubernetes.events import take_in
from tests.doubles.kubernetes.managed_fields import record_apply, record_update
from tests.doubles.kubernetes.patches import APPLY, apply_patch, read_patch
from tests.doubles.kubernetes.reading import typed
from tests.doubles.kubernetes.resources import Target
from tests.doubles.kubernetes.store import Store, now
from tests.doubles.kubernetes.validation import check_object, check_types, prune

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_FIXED = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
)
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def create(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a POST of a new object."""
    resource, obj = target.resource, asked.json_body()
    metadata = obj.setdefault("metadata", {})
    if resource.namespaced and metadata.setdefault("namespace", target.namespace) != (
        target.namespace
    ):
        words = "the namespace of the provided object does not match the namespace sent"
        raise bad_request(f"{words} on the request")
    check_types(obj, patch=False)
    prune(resource, obj, strict=asked.is_strict, patch=False)
    if not metadata.get("name"):
        if not metadata.get("generateName"):
            cause = Cause("metadata.name", "Required value: name or generateName is required")
            raise invalid(resource.kind, "", [cause])
        suffix = "".join(secrets.choice(_NAME_LETTERS) for _ in range(5))
        metadata["name"] = metadata["generateName"] + suffix
    if resource.store == "events":
        obj = take_in(resource, obj)
    _admit(resource.store, obj)
    check_object(resource, obj)
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        obj["metadata"].pop(field, None)
    record_update({}, obj, asked.manager, resource.api_version, now())
    if asked.is_dry_run:
        return Answer(201, typed(resource, obj))
    return Answer(201, typed(resource, store.create(resource, obj)))


def _admit(store: str, obj: Json) -> None:
    """Fill in what the server fills in for a new object."""
    if store == "nodes":
        taints = obj.setdefault("spec", {}).setdefault("taints", [])
        if NOT_READY not in taints:
            taints.append(dict(NOT_READY))
        status = obj.setdefault("status", {})
        status.setdefault("allocatable", copy.deepcopy(status.get("capacity", {})))
    elif store == "pods":
        obj.setdefault("status", {}).setdefault("phase", "Pending")
        obj.setdefault("spec", {}).setdefault("restartPolicy", "Always")
    elif store == "namespaces":
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}


def replace(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a PUT."""
    wanted = asked.json_body()
    check_types(wanted, patch=False)
    prune(target.resource, wanted, strict=asked.is_strict, patch=False)
    with store.lock:
        before = store.get(target.resource, target.namespace, target.name)
        return _settle(store, target, asked, before, wanted)


def patch(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a PATCH of any of the four kinds."""
    change = read_patch(asked.content_type, asked.body)
    if isinstance(change, dict):
        prune(target.resource, change, strict=asked.is_strict, patch=True)
    with store.lock:
        before = store.get(target.resource, target.namespace, target.name)
        wanted = apply_patch(asked.content_type, typed(target.resource, before), change)
        check_types(wanted, patch=True)
        applied = change if asked.content_type == APPLY else None
        return _settle(store, target, asked, before, wanted, applied)


def _settle(
    store: Store,
    target: Target,
    asked: Asked,
    before: Json,
    wanted: Json,
    applied: Json | None = None,
) -> Answer:
    """Check a new state of an object against the stored one, and store it unless it is dry."""
    resource = target.resource
    _check_identity(target, before, wanted)
    after = _of_subresource(target, before, wanted)
    check_object(resource, after)
    if applied is not None:
        force = asked.query.get("force") == "true"
        record_apply(before, after, applied, asked.manager, resource.api_version, now(), force)
    else:
        record_update(before, after, asked.manager, resource.api_version, now())
    if after == before or asked.is_dry_run:
        return Answer(200, typed(resource, after))
    return Answer(200, typed(resource, store.replace(resource, after)))


def _check_identity(target: Target, before: Json, wanted: Json) -> None:
    metadata, stored = wanted.setdefault("metadata", {}), before["metadata"]
    if metadata.get("name", target.name) != target.name:
        raise bad_request("the name of the object does not match the name on the URL")
    if metadata.get("resourceVersion") not in (None, "", stored["resourceVersion"]):
        raise conflict(target.resource.plural, target.name)
    uid = metadata.get("uid")
    if uid and uid != stored["uid"]:
        cause = Cause("metadata.uid", f'Invalid value: "{uid}": field is immutable')
        raise invalid(target.resource.kind, target.name, [cause])


def _of_subresource(target: Target, before: Json, wanted: Json) -> Json:
    """Keep what this path may not change: only /status writes the status, and nothing else."""
    after = copy.deepcopy(before if target.subresource == "status" else wanted)
    if target.resource.store in ("nodes", "pods"):
        source = wanted if target.subresource == "status" else before
        _take_over(after, source, "status")
    stored = before["metadata"]
    for field in _FIXED:
        _take_over(after["metadata"], stored, field)
    for field in ("kind", "apiVersion"):
        _take_over(after, before, field)
    _drop_empty(after["metadata"], "labels", "annotations")
    _drop_empty(after.get("spec") or {}, "taints")
    return after


def _take_over(target: Json, source: Json, field: str) -> None:
    if field in source:
        target[field] = copy.deepcopy(source[field])
    else:
        target.pop(field, None)


def _drop_empty(target: Json, *fields: str) -> None:
    for field in fields:
        if field in target and not target[field]:
            del target[field]


def delete(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a DELETE of one object."""
    options = asked.json_body() if asked.body else {}
    resource = target.resource
    with store.lock:
        present = store.get(resource, target.namespace, target.name)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted and wanted != present["metadata"]["uid"]:
            raise wrong_uid(resource.kind, target.name, wanted, present["metadata"]["uid"])
        dry = asked.is_dry_run or "All" in (options.get("dryRun") or ())
        if not dry:
            store.delete(resource, target.namespace, target.name)
    details = {"name": target.name, "kind": resource.plural, "uid": present["metadata"]["uid"]}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return Answer(200, {**body, "details": details})


def success(code: int) -> Json:
    """Build the Status of something that was done."""
    done = status_body(code, None, "")
    del done["message"]
    return {**done, "status": "Success"}
