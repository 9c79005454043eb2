"""How is Google Compute Engine told that a host computes wrong, and how far is it with that?

Two calls of one REST API, by plain HTTP: Google's client for it would bring a hundred megabytes of
other services. The order is sent once, with an id of its own: a second one with the same id would
be taken for the first.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
)

from app.cluster.errors import (
    ClusterError,
    ClusterFailed,
    ClusterNotConfigured,
    ClusterRefused,
    ClusterTimeout,
    ClusterUnreachable,
    MachineGone,
)
from app.cluster.provider.ports import Report

API = "https://compute.googleapis.com"
METADATA = "http://metadata.google.internal"
TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 -- a path
REASON = "SILENT_DATA_CORRUPTION"
SCHEDULE = "IMMEDIATE"  # the only one that the API takes
LONGEST_BODY = 1 << 20
_PROVIDER_ID = re.compile(r"gce://([a-z0-9:.-]+)/([a-z0-9-]+)/([a-z]([-a-z0-9]*[a-z0-9])?)")
_NOT_SENT = (NewConnectionError, ConnectTimeoutError, NameResolutionError)


@dataclass(frozen=True, slots=True)
class Host:
    """A virtual machine by its place; its host is what is reported."""

    project: str
    zone: str
    instance: str

    @property
    def path(self) -> str:
        """Give its path in the API."""
        return f"/compute/v1/projects/{self.project}/zones/{self.zone}/instances/{self.instance}"


def host_of(provider_id: str | None) -> Host | None:
    """Read the place out of a node's provider id; None where it is no machine of Google's."""
    found = _PROVIDER_ID.fullmatch(provider_id or "")
    return Host(found[1], found[2], found[3]) if found else None


class Compute:
    """The API behind one entry of the setting."""

    def __init__(
        self,
        url: str = API,
        token_url: str = METADATA,
        token_file: str | None = None,
        limits: tuple[float, float] = (3.0, 20.0),
    ) -> None:
        """Keep where it is and where a token comes from: a file, else the metadata server."""
        self._url, self._token_url, self._file = url.rstrip("/"), token_url.rstrip("/"), token_file
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(*limits), retries=False)
        self._token: tuple[str, float] = ("", 0.0)

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._pool.clear()

    def report(self, host: Host, why: str, order: str) -> Report:
        """Report the host of a machine, once; `order` names the order for the API's own memory."""
        body = {
            "disruptionSchedule": SCHEDULE,
            "faultReasons": [{"behavior": REASON, "description": why[:1000]}],
        }
        marked = uuid.uuid5(uuid.NAMESPACE_URL, f"silent-witness:{order}")
        path = f"{host.path}/reportHostAsFaulty?requestId={marked}"
        return _report(self._ask("POST", path, body))

    def look(self, host: Host, name: str) -> Report:
        """Read how far a report is."""
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,200}", name):
            raise ClusterRefused(f"{name!r} is no operation.")
        path = f"/compute/v1/projects/{host.project}/zones/{host.zone}/operations/{name}"
        return _report(self._ask("GET", path, None))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        changing = method == "POST"
        headers = {"Authorization": f"Bearer {self._bearer()}", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = self._pool.request(
                method, self._url + path, body=data, headers=headers,
                redirect=False, preload_content=False,
            )  # fmt: skip
            text = answer.read(LONGEST_BODY + 1)
            answer.release_conn()
        except _NOT_SENT as error:
            raise ClusterUnreachable(
                f"Compute Engine cannot be reached: {_plain(error)}."
            ) from None
        except HTTPError as error:
            words = f"Compute Engine gave no answer: {_plain(error)}."
            raise ClusterTimeout(words, maybe_applied=changing) from None
        return _document(answer.status, text, changing)

    def _bearer(self) -> str:
        if self._file:
            try:
                return _one_line(Path(self._file).read_text())
            except (OSError, ValueError):
                words = f"The token file {self._file} cannot be read."
                raise ClusterNotConfigured(words) from None
        token, until = self._token
        if token and time.monotonic() < until:
            return token
        return self._fetch()

    def _fetch(self) -> str:
        """Ask the metadata server, which a pod with a workload identity can reach."""
        try:
            answer = self._pool.request(
                "GET", self._token_url + TOKEN_PATH, headers={"Metadata-Flavor": "Google"},
                redirect=False,
            )  # fmt: skip
            found = json.loads(answer.data[:LONGEST_BODY])
            token, seconds = str(found["access_token"]), float(found["expires_in"])
        except (HTTPError, MaxRetryError, ValueError, KeyError, TypeError) as error:
            words = f"The metadata server gave no token for Compute Engine: {_plain(error)}."
            raise ClusterNotConfigured(words) from None
        self._token = token, time.monotonic() + max(0.0, seconds - 60)
        return token


def _one_line(text: str) -> str:
    """Take a token out of a file; raise ValueError where it cannot be one."""
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("no token")
    return token


def _document(status: int, text: bytes, changing: bool) -> dict[str, Any]:
    """Read an answer; raise what its status means."""
    try:
        found = json.loads(text) if len(text) <= LONGEST_BODY else None
    except ValueError:
        found = None
    if status == 200 and isinstance(found, dict):
        return found
    said = _message(found) or f"HTTP {status}"
    error: type[ClusterError] = ClusterFailed
    if status in (400, 401, 403, 409, 412, 429):
        error = ClusterRefused
    elif status == 404:
        error = MachineGone
    # Only an answer of its own with a 4xx proves that nothing was begun.
    maybe = changing and error is ClusterFailed
    raise error(f"Compute Engine answered: {said}.", status=status, maybe_applied=maybe)


def _message(found: object) -> str | None:
    inner = found.get("error") if isinstance(found, dict) else None
    text = inner.get("message") if isinstance(inner, dict) else None
    return " ".join(str(text).split())[:300].rstrip(".") if text else None


def _report(found: Mapping[str, Any]) -> Report:
    errors = (
        (found.get("error") or {}).get("errors") if isinstance(found.get("error"), dict) else ()
    )
    said = "; ".join(str(one.get("message", one)) for one in errors or () if isinstance(one, dict))
    return Report(str(found.get("name") or ""), str(found.get("status") or ""), said or None)


def _plain(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
