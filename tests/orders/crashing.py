"""How is a worker killed at exactly one point of its work, as if its process had ended there?"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from botocore.client import BaseClient

from app.cluster.api import KubernetesApi
from app.store.store import Store

OUTSIDE = (
    (KubernetesApi, "get"),
    (KubernetesApi, "patch"),
    (KubernetesApi, "post"),
    (BaseClient, "_make_api_call"),
)


class Killed(BaseException):
    """The end of a process: nothing of ours catches it."""


class Killer:
    """Counts every commit and every call to the outside, and kills before or after one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self._at: int | None = None
        for owner, name in OUTSIDE:
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name), name))
        # After the commit the writer's thread answers; the worker dies before or after that.
        monkeypatch.setattr(Store, "write", self._around(Store.write, "write"))

    def arm(self, at: int | None) -> None:
        """Begin to count anew; None: count only."""
        self.seen, self._at = [], at

    def disarm(self) -> None:
        """Let everything live."""
        self._at = None

    def _around(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(call)
        def around(*arguments: Any, **named: Any) -> Any:
            what = str(arguments[1]) if name == "_make_api_call" else name
            self._pass(f"before {what}")
            answer = call(*arguments, **named)
            self._pass(f"after {what}")
            return answer

        return around

    def _pass(self, point: str) -> None:
        self.seen.append(point)
        if self._at is not None and len(self.seen) > self._at:
            self._at = None
            raise Killed(point)
