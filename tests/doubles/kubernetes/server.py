"""Which answer does a request get: who asks, what is meant, may they, and what happens then?"""

from tests.doubles.kubernetes import reading, special, writing
from tests.doubles.kubernetes.access import ANONYMOUS, PUBLIC_PATHS, Access, forbidden_path
from tests.doubles.kubernetes.answers import (
    Answer,
    ApiError,
    method_not_allowed,
    no_such_path,
)
from tests.doubles.kubernetes.asking import Asked
from tests.doubles.kubernetes.discovery import discover
from tests.doubles.kubernetes.reading import Stream
from tests.doubles.kubernetes.resources import Target, find_target
from tests.doubles.kubernetes.store import Store

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiServer:
    """The API server without its network."""

    def __init__(self, store: Store, access: Access) -> None:
        self.store = store
        self.access = access

    def answer(self, asked: Asked) -> Answer | Stream:
        """Answer one request; a failure is an answer, too."""
        try:
            asked.user = self.access.who(asked.headers.get("authorization"))
            return self._route(asked)
        except ApiError as error:
            return error.answer

    def _route(self, asked: Asked) -> Answer | Stream:
        if asked.path not in PUBLIC_PATHS and asked.user.name == ANONYMOUS:
            self._refuse_stranger(asked)
        own = discover(asked.path) if asked.method == "GET" else None
        if own is not None:
            return Answer(200, own)
        target = find_target(asked.path)
        self.access.demand(asked.user, self._verb(asked, target), target)
        if asked.method == "GET":
            return self._read(asked, target)
        return self._write(asked, target)

    def _refuse_stranger(self, asked: Asked) -> None:
        """Say what a real server says to somebody without a token."""
        try:
            target = find_target(asked.path)
        except ApiError as error:
            raise forbidden_path(asked.user, asked.path) from error
        self.access.demand(asked.user, self._verb(asked, target), target)

    def _verb(self, asked: Asked, target: Target) -> str:
        if asked.method == "GET":
            if target.name:
                return "get"
            return "watch" if asked.is_watch else "list"
        if asked.method not in _VERBS:
            raise method_not_allowed()
        return _VERBS[asked.method]

    def _read(self, asked: Asked, target: Target) -> Answer | Stream:
        if target.resource.is_review:
            raise method_not_allowed()
        if target.name:
            return reading.read(self.store, target, asked)
        if asked.is_watch:
            return reading.watch(self.store, target, asked)
        return reading.list_all(self.store, target, asked)

    def _write(self, asked: Asked, target: Target) -> Answer:
        if asked.method == "POST":
            return self._post(asked, target)
        if not target.name or target.subresource not in ("", "status"):
            raise method_not_allowed()
        if asked.method == "PATCH":
            return writing.patch(self.store, target, asked)
        if asked.method == "PUT":
            return writing.replace(self.store, target, asked)
        if target.subresource:
            raise method_not_allowed()
        return writing.delete(self.store, target, asked)

    def _post(self, asked: Asked, target: Target) -> Answer:
        if target.subresource == "eviction":
            return special.evict(self.store, target, asked)
        if target.subresource == "token":
            return special.request_token(self.store, self.access, target, asked)
        if target.subresource or target.name:
            raise method_not_allowed() if target.subresource else no_such_path()
        if target.resource.is_review:
            return special.review(self.access, target, asked)
        return writing.create(self.store, target, asked)
