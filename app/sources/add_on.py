"""When is the cluster's add-on asked, and which address of its may be sent a signed request?

What it says counts for an hour. Where it cannot be asked it is asked again, after longer and longer
waits, and meanwhile the same refusal is given without asking.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urlsplit

from app.sources.discovery import AddOn
from app.sources.ports import About, Refused, SourceError

log = logging.getLogger(__name__)

KEEP_S = 3600.0
BACK_OFF_S = (5.0, 15.0, 60.0, 300.0)

_NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_AMAZON = re.compile(
    rf"(?:aps-workspaces\.(?P<region>{_NAME})|vpce-{_NAME}\.aps-workspaces\.(?P<inside>{_NAME})\.vpce)"
    r"\.amazonaws\.com(?:\.cn)?"
)
"""Hosts of Amazon Managed Prometheus: public, and of an interface endpoint of a VPC."""


class AddOnSettings:
    """What one cluster's add-on says; safe to share between threads."""

    def __init__(
        self, cluster: str, describe: Callable[[], AddOn], check: Callable[[str], str]
    ) -> None:
        """Prepare; nothing is asked yet. `check` raises `Refused` for an address not to be used."""
        self._cluster, self._describe, self._check = cluster, describe, check
        self._lock = threading.Lock()
        self._found: AddOn | None = None
        self._failure: SourceError | None = None
        self._failures, self._next = 0, 0.0

    def settings(self) -> AddOn:
        """Give its settings; raises `SourceError` where they were never told."""
        with self._lock:  # one thread asks, the others wait for what it learns
            if time.monotonic() >= self._next:
                self._ask()
            if self._found is not None:
                return self._found
            assert self._failure is not None
            raise self._failure

    def _ask(self) -> None:
        try:
            self._found, self._failure, self._failures = self._describe(), None, 0
        except SourceError as error:
            wait = BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
            self._failure, self._failures = error, self._failures + 1
            log.warning("the add-on of %s, asked again in %d s: %s", self._cluster, wait, error)
        else:
            wait = KEEP_S
        self._next = time.monotonic() + wait

    def url(self) -> str:
        """Give the address of the metrics; raises `SourceError` where there is none to be used."""
        found = self.settings().url
        if not found:
            raise Refused(f"The add-on of {self._cluster} does not say where its metrics are.")
        return self._check(found)

    def complete(self, known: About) -> About:
        """Fill in what the setting leaves open, as far as the add-on tells."""
        try:
            said = self.settings()
        except SourceError:
            return known
        return replace(
            known,
            level=known.level or said.level,
            interval_s=known.interval_s or said.interval_s,
        )


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which addresses of the add-on are used.

    `hosts` are those that the operator names, `host` or `host:port`. `signs_for` is the region that
    requests are signed for, None where they are not signed; `tells` says that requests carry a
    token or headers of the operator's.
    """

    hosts: tuple[str, ...] = ()
    signs_for: str | None = None
    tells: bool = False

    def checked(self, url: str) -> str:
        """Give the address as it is used; raises `Refused` where it must not be."""
        try:
            parts = urlsplit(url)
            place = f"{parts.hostname}:{parts.port or 443}"
        except ValueError:
            raise Refused("The address that the add-on names cannot be read.") from None
        said = _wrong(url, parts)
        if said is None and place not in {_with_port(one) for one in self.hosts}:
            said = self._stranger(parts)
        if said is not None:
            raise Refused(f"The address that the add-on names is not used: {said}.")
        return url.rstrip("/")

    def _stranger(self, parts: SplitResult) -> str | None:
        if self.signs_for is not None:
            return _not_amazon(parts, self.signs_for)
        return f"the entry's “hosts” do not name {parts.hostname}" if self.tells else None


def _wrong(url: str, parts: SplitResult) -> str | None:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "it holds characters that no address has"
    if parts.scheme != "https" or not parts.hostname:
        return "it is no https address"
    if "@" in parts.netloc:
        return "it holds credentials"
    return "it holds more than host and path" if "?" in url or "#" in url else None


def _with_port(host: str) -> str:
    return host.lower() if ":" in host else f"{host.lower()}:443"


def _not_amazon(parts: SplitResult, region: str) -> str | None:
    found = _AMAZON.fullmatch(parts.hostname or "")
    if found is None or parts.port not in (None, 443):
        return (
            f"{parts.hostname} is no host of Amazon Managed Prometheus, and the entry's “hosts” do "
            "not name it"
        )
    there = found["region"] or found["inside"]
    return None if there == region else f"it lies in {there}, and the entry signs for {region}"
