"""What is stored, under which version, and what has happened to it?"""

import copy
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.doubles.kubernetes.answers import Json, already_exists, not_found
from tests.doubles.kubernetes.resources import Resource

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """One thing that happened; `before` is None for a new object."""

    version: int
    type: str
    key: Key
    obj: Json
    before: Json | None


def now() -> str:
    """Give the time as a server stamps objects, in whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """All objects and their history; `lock` guards a read-decide-write of a handler."""

    def __init__(self, first_version: int = 1) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = first_version - 1
        self.oldest = 0  # Versions below this one have been compacted away.
        self._objects: dict[Key, Json] = {}
        self._history: list[Change] = []

    def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """Give a copy of one object; raise 404."""
        with self.lock:
            found = self._objects.get((resource.store, namespace, name))
            if found is None:
                raise not_found(resource.plural, name, resource.group)
            return copy.deepcopy(found)

    def has(self, resource: Resource, namespace: str, name: str) -> bool:
        with self.lock:
            return (resource.store, namespace, name) in self._objects

    def list(self, resource: Resource, namespace: str) -> list[Json]:
        """Give copies of all objects of a kind, in order of namespace and name."""
        with self.lock:
            return [
                copy.deepcopy(self._objects[key])
                for key in sorted(self._objects)
                if key[0] == resource.store and (not namespace or key[1] == namespace)
            ]

    def create(self, resource: Resource, obj: Json) -> Json:
        """Store a new object with uid, version and time of creation; raise 409."""
        with self.lock:
            metadata = obj["metadata"]
            key = (resource.store, metadata.get("namespace", ""), metadata["name"])
            if key in self._objects:
                raise already_exists(resource.plural, metadata["name"])
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", now())
            return self._write("ADDED", key, obj, None)

    def replace(self, resource: Resource, obj: Json) -> Json:
        """Store a new state of an object that is there."""
        with self.lock:
            metadata = obj["metadata"]
            key = (resource.store, metadata.get("namespace", ""), metadata["name"])
            return self._write("MODIFIED", key, obj, self._objects[key])

    def delete(self, resource: Resource, namespace: str, name: str) -> Json:
        """Remove an object and give its last state."""
        with self.lock:
            last = self.get(resource, namespace, name)
            key = (resource.store, namespace, name)
            before = self._objects.pop(key)
            self._note("DELETED", key, last, before)
            return last

    def _write(self, type_: str, key: Key, obj: Json, before: Json | None) -> Json:
        stored = copy.deepcopy(obj)
        self._objects[key] = stored
        self._note(type_, key, stored, before)
        return copy.deepcopy(stored)

    def _note(self, type_: str, key: Key, obj: Json, before: Json | None) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._history.append(Change(self.version, type_, key, copy.deepcopy(obj), before))
        self.changed.notify_all()

    def compact(self) -> None:
        """Forget the history up to now, so that older watches and pages get 410."""
        with self.lock:
            self.oldest = self.version
            self._history.clear()

    def since(self, resource: Resource, namespace: str, version: int) -> Iterator[Change]:
        """Give what has happened to a kind after a version."""
        with self.lock:
            found = [
                change
                for change in self._history
                if change.version > version
                and change.key[0] == resource.store
                and (not namespace or change.key[1] == namespace)
            ]
        return iter(found)

    def wait_beyond(self, version: int, seconds: float) -> None:
        """Sleep until something happens after a version, or the time is over."""
        with self.changed:
            self.changed.wait_for(lambda: self.version > version, timeout=seconds)
