"""How does one request reach a Kubernetes API server, exactly once and within a time limit?

Goes through the official client for addresses, certificates, tokens and their renewal, but reads
plain JSON: the client's models drop fields that they do not know, and those may be evidence.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from app.cluster.answers import error_of_status, error_of_transport
from app.cluster.errors import ClusterFailed, ClusterTimeout

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 10.0
PAGE = 250
"""Nodes or pods a page: a GPU node with its images is some 20 kB of JSON."""
ANSWER_LIMIT = 64 * 2**20
"""Bytes; no page of ours comes near it, so more is a mistake or an attack."""
MERGE_PATCH = "application/merge-patch+json"
"""Lists are replaced and null removes, for every field: nothing depends on a schema."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one request may take, in seconds."""

    connect_s: float = CONNECT_TIMEOUT_S
    read_s: float = READ_TIMEOUT_S


class KubernetesApi:
    """One cluster's API server; the client is made at first use and kept."""

    def __init__(self, load: Callable[[], Any], limits: Limits) -> None:
        """Take a function that makes the client (it may raise `ClusterNotConfigured`)."""
        self._load = load
        self._limits = limits
        self._client: Any = None
        self._lock = threading.Lock()

    def client(self) -> Any:
        """Make the client, or raise `ClusterNotConfigured`; a failure is tried again next time."""
        with self._lock:
            if self._client is None:
                self._client = self._load()
            return self._client

    def close(self) -> None:
        """Close the connections that are kept open."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _forget_client(self) -> None:
        """Read the credentials anew at the next call: a token file or plugin may have a new one.

        The client itself reads them again only when it knows when they expire.
        """
        with self._lock:
            self._client = None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read one document."""
        return self._send("GET", path, query or {}, None, None)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create one object, or ask a review."""
        return self._send("POST", path, {}, body, "application/json")

    def patch(self, path: str, body: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
        """Send one merge patch."""
        return self._send("PATCH", path, query, body, MERGE_PATCH)

    def pages(self, path: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Read all items of a list, page by page."""
        items: list[dict[str, Any]] = []
        more = ""
        while True:
            step = {**query, "limit": str(PAGE), **({"continue": more} if more else {})}
            answer = self.get(path, step)
            items.extend(_objects(answer.get("items")))
            metadata = answer.get("metadata")
            following = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            if not following or following == more:
                return items
            more = following

    def first_page(
        self, path: str, query: Mapping[str, str], limit: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Read the first items of a list; also tell whether there are more."""
        answer = self.get(path, {**query, "limit": str(limit)})
        items = _objects(answer.get("items"))
        metadata = answer.get("metadata")
        more = isinstance(metadata, dict) and bool(metadata.get("continue"))
        # A server that knows no limit answers with everything.
        return items[:limit], more or len(items) > limit

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str | None,
    ) -> dict[str, Any]:
        """Send one request once; raise a `ClusterError` for everything but an answered object."""
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        status, answer_headers, text = self._exchange(method, path, query, body, headers)
        changing = method != "GET" and "dryRun" not in query
        document = _document(text)
        if status == HTTPStatus.UNAUTHORIZED:
            self._forget_client()
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise error_of_status(status, document, text, answer_headers, changing=changing)
        if document is None:
            raise ClusterFailed(
                f"The cluster answered {status}, but not with JSON: is this address a Kubernetes "
                "API server?",
                status=status,
                maybe_applied=changing,
            )
        return document

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        headers: dict[str, str],
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send and read; every exception of the client and of urllib3 is translated here."""
        client = self.client()
        changing = method != "GET" and "dryRun" not in query
        try:
            ready = client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            limits = (self._limits.connect_s, self._limits.read_s)
            response = client.call_api(*ready, _request_timeout=limits)
            return response.status, response.headers, self._read(response.response, changing)
        except Exception as error:
            raise error_of_transport(error, self._limits, changing=changing) from error

    def _read(self, response: Any, changing: bool) -> bytes:
        """Read the answer with a limit on its whole time and size.

        The client's own limit is on the wait for each piece, so an answer that drips would hold
        the thread for ever.
        """
        deadline = time.monotonic() + self._limits.read_s
        parts: list[bytes] = []
        size = 0
        try:
            # read1 gives what has arrived; read would wait for a full piece.
            while part := response.read1(65536):
                parts.append(part)
                size += len(part)
                self._stay_within(deadline, size, changing)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return b"".join(parts)

    def _stay_within(self, deadline: float, size: int, changing: bool) -> None:
        """Raise when an answer takes too long or grows too large."""
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                f"The answer was not complete after {self._limits.read_s:g} s.",
                maybe_applied=changing,
            )
        if size > ANSWER_LIMIT:
            raise ClusterFailed("The answer is too large.", maybe_applied=changing)


def _document(text: bytes) -> dict[str, Any] | None:
    """Parse an answer; None where it is no JSON object."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _objects(value: object) -> list[dict[str, Any]]:
    """Give the objects of a list; what is none is left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
