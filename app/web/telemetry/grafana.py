"""Which dashboard of the add-on's Grafana shows a node over a time?

Only where an address is configured that can be opened: no link is better than a dead one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

DASHBOARD = "aws-sm-hp-observability-cluster-v1_0"
"""The uid of the add-on's dashboard “Cluster”, which holds the GPUs' errors."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Entries = Mapping[str, Sequence[Mapping[str, Any]]]
"""The setting WITNESS_SOURCES: the sources of each cluster."""


@dataclass(frozen=True, slots=True)
class Link:
    """An address, and what it shows; `node` None: the node has no name that Grafana knows."""

    address: str
    node: str | None
    start: datetime
    end: datetime


def link(
    entries: Entries, cluster: str, node: str | None, start: datetime, end: datetime
) -> Link | None:
    """Make the link for a node and a time; None where no usable address is configured.

    Variables in the configured address are kept: the one for the cluster cannot be known here.
    """
    for entry in entries.get(cluster, ()):
        parts = _usable(entry.get("grafana"))
        if parts is not None:
            return Link(_address(parts, node, start, end), node, start, end)
    return None


def _usable(text: object) -> SplitResult | None:
    """Read an address that a browser can open and that carries no secret."""
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
        readable = parts.port is None or parts.port > 0
    except ValueError:
        return None
    loopback = parts.hostname in _LOOPBACK
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
        return None
    sound = readable and "@" not in parts.netloc and "\\" not in text
    return parts if parts.hostname and sound else None


def _address(parts: SplitResult, node: str | None, start: datetime, end: datetime) -> str:
    path = parts.path.rstrip("/")
    if "/d/" not in path:
        path += f"/d/{DASHBOARD}"
    times = [("from", _milliseconds(start)), ("to", _milliseconds(end))]
    ours = {"from", "to", "var-Hostname"} if node else {"from", "to"}
    kept = [pair for pair in parse_qsl(parts.query) if pair[0] not in ours]
    named = [("var-Hostname", node)] if node else []
    query = urlencode([*times, *kept, *named])
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def _milliseconds(moment: datetime) -> str:
    return str(round(moment.timestamp() * 1000))
