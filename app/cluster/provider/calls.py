"""How does one question or one order reach SageMaker through the official client?

Questions go through a client that tries again by itself; orders through one that never does: they
carry no token that would make a second one harmless, and a repeat looks like a failure.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from app.cluster.errors import ClusterError, ClusterFailed, ClusterNotConfigured
from app.cluster.provider import failures
from app.cluster.provider.ports import Answer

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 10.0
READ_TRIES = 2  # together; the engine looks again anyway
ORDER_PATIENCE = 2  # an order waits so many times longer: its lost answer is a riddle
PAGE = 100  # the most that the API gives at once
PAGES = 100  # a cluster has 6,758 machines at most

_UNREADABLE = "WitnessUnreadable"


@dataclass(frozen=True, slots=True)
class Access:
    """How SageMaker is reached; None: as the environment says."""

    region: str | None
    endpoint_url: str | None = None
    profile: str | None = None
    connect_s: float = CONNECT_TIMEOUT_S
    read_s: float = READ_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class NotTaken:
    """An order without a usable answer: what that means for each of its machines."""

    answer: Answer
    message: str
    code: str | None = None


class SagemakerCalls:
    """The two clients, made at first use and kept; safe to share between threads."""

    def __init__(self, access: Access) -> None:
        """Keep the way in; touches no network."""
        self._access = access
        self._lock = threading.Lock()
        self._clients: tuple[Any, Any] | None = None
        self._of_thread = threading.local()

    def load(self) -> None:
        """Make the clients: a second of import and reading, before the first question."""
        self._pair()

    def close(self) -> None:
        """Close the connections that are kept open."""
        with self._lock:
            for client in self._clients or ():
                client.close()
            self._clients = None

    def _pair(self) -> tuple[Any, Any]:
        """Give the clients for questions and for orders; a failure is tried again next time."""
        with self._lock:
            if self._clients is None:
                self._clients = _make_clients(self._access, self._note_sending)
            return self._clients

    def _forget(self, error: Exception) -> None:
        """Read credentials anew at the next call after ours were not accepted.

        Those of a file are read once; whoever changed the file expects the new ones to count.
        """
        if failures.said_by(error).code in failures.STALE:
            with self._lock:
                self._clients = None

    def _note_sending(self, **_: Any) -> None:
        self._of_thread.sent = True

    def read(self, operation: str, **asked: Any) -> Mapping[str, Any]:
        """Ask one question; raise a `ClusterError` for everything but a readable answer."""
        return self._asking(lambda client: getattr(client, operation)(**asked))

    def try_reading(self, operation: str, **asked: Any) -> Mapping[str, Any] | failures.Said:
        """Ask one question; give SageMaker's no as it was said, to be judged by the caller."""
        from botocore.exceptions import ClientError

        client, _ = self._pair()
        try:
            return _readable(getattr(client, operation)(**asked))
        except ClientError as error:
            said = failures.said_by(error)
            if failures.says_missing(said) or said.code in failures.INVALID:
                return said
            raise self._reading_failed(error) from error
        except Exception as error:
            raise self._reading_failed(error) from error

    def can(self, operation: str) -> bool:
        """Tell whether the client knows an operation."""
        client, _ = self._pair()
        return hasattr(client, operation)

    def pages(
        self, operation: str, key: str, asked: Mapping[str, Any], limit: int = PAGES
    ) -> Iterator[Mapping[str, Any]]:
        """Read the items of a list, page by page; raise when there are more pages than `limit`."""
        client, _ = self._pair()
        try:
            pages = client.get_paginator(operation).paginate(
                **asked, PaginationConfig={"PageSize": PAGE}
            )
            for number, page in enumerate(pages):
                _stay_within(limit, number)
                yield from _readable(page).get(key) or ()
        except Exception as error:
            raise self._reading_failed(error) from error

    def order(self, operation: str, **asked: Any) -> Mapping[str, Any] | NotTaken:
        """Send one order, once; never raises."""
        try:
            _, client = self._pair()
        except ClusterError as error:
            return NotTaken(Answer.FAILED, f"It was not sent: {error.message}")
        self._of_thread.sent = False
        try:
            return _readable(getattr(client, operation)(**asked))
        except ClusterFailed as error:
            words = f"{error.message} Whether the order was taken is not known."
            return NotTaken(Answer.UNKNOWN, words)
        except Exception as error:
            self._forget(error)
            return NotTaken(*failures.order_failed(error, sent=bool(self._of_thread.sent)))

    def _asking(self, ask: Callable[[Any], Any]) -> Mapping[str, Any]:
        client, _ = self._pair()
        try:
            return _readable(ask(client))
        except Exception as error:
            raise self._reading_failed(error) from error

    def _reading_failed(self, error: Exception) -> ClusterError:
        self._forget(error)
        return failures.reading_failed(error, (self._access.connect_s, self._access.read_s))


@cache
def _loader() -> Any:
    """Give what reads the descriptions of services: that of SageMaker is read once a process."""
    from botocore.loaders import Loader

    return Loader()


def _make_clients(access: Access, note_sending: Callable[..., None]) -> tuple[Any, Any]:
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    common = {"connect_timeout": access.connect_s, "user_agent_extra": "silent-witness"}
    asking = Config(
        read_timeout=access.read_s,
        retries={"mode": "standard", "total_max_attempts": READ_TRIES},
        **common,
    )
    ordering = Config(
        read_timeout=access.read_s * ORDER_PATIENCE,
        retries={"mode": "standard", "total_max_attempts": 1},
        **common,
    )
    try:
        session = Session(profile=access.profile)
        session.register_component("data_loader", _loader())
        made = [
            session.create_client(
                "sagemaker", access.region, endpoint_url=access.endpoint_url, config=config
            )
            for config in (asking, ordering)
        ]
    except (BotoCoreError, ValueError) as error:
        raise ClusterNotConfigured(
            f"The client of SageMaker cannot be made: {failures.plain(error)}"
        ) from error
    made[1].meta.events.register("before-send.sagemaker", note_sending)
    for client in made:
        client.meta.events.register("after-call.sagemaker", _mark_unreadable)
    return made[0], made[1]


def _mark_unreadable(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Mark a success whose body is no JSON object.

    botocore reads such a body as an answer without any content, and checks no Content-Length: half
    an answer, or a page of something in between, would look like an empty list.
    """
    try:
        document = json.loads(http_response.content)
    except ValueError:
        document = None
    if http_response.status_code < 300 and not isinstance(document, dict):
        parsed[_UNREADABLE] = True


def _stay_within(limit: int, number: int) -> None:
    if number >= limit:
        raise ClusterFailed(f"SageMaker gave more than {limit} pages.")


def _readable(answer: Any) -> Mapping[str, Any]:
    if answer.get(_UNREADABLE):
        raise ClusterFailed("SageMaker answered with something that cannot be read.")
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def as_json(value: Any) -> Any:
    """Copy an answer with its times as text, so that it can be kept."""
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value
