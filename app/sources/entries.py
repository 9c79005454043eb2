"""Can an entry of WITNESS_SOURCES be used, and if not, why?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

KINDS = ("prometheus", "amp", "mimir", "thanos", "victoriametrics")
KEYS = {
    "kind", "url", "headers", "token_file", "ca_file", "region", "eks_cluster", "level",
    "interval_s", "timeout_s", "grafana", "samples_limit", "endpoint_url", "hosts",
}  # fmt: skip
LEVELS = (None, "basic", "advanced", "disabled")
LONGEST_S = 3600.0

_REGION = re.compile(r"[a-z0-9-]{1,40}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def wrong(entry: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an entry; None where it can be used."""
    unknown = sorted(str(one) for one in set(entry) - KEYS)
    if unknown:
        return f"it has unknown keys: {', '.join(unknown)}"
    return _wrong_place(entry) or _wrong_detail(entry)


def _wrong_place(entry: Mapping[str, Any]) -> str | None:
    url, cluster, region = entry.get("url"), entry.get("eks_cluster"), entry.get("region")
    checks = (
        (entry.get("kind", "prometheus") not in KINDS, f"kind is one of {', '.join(KINDS)}"),
        (not url and not cluster, "it has neither url nor eks_cluster"),
        (bool(url) and not _is_http(url), "its url is no http address"),
        (bool(url) and "@" in str(url), "its url holds credentials; a token has a file"),
        (bool(url) and bool({"?", "#"} & set(str(url))), "its url holds more than host and path"),
        (entry.get("kind") == "amp" and not region, "amp needs its region"),
        (bool(cluster) and not region, "eks_cluster needs a region"),
        (cluster is not None and not isinstance(cluster, str), "eks_cluster is no name"),
        (region is not None and not _REGION.fullmatch(str(region)), "region is no name of one"),
    )
    return next((said for is_wrong, said in checks if is_wrong), None)


def _wrong_detail(entry: Mapping[str, Any]) -> str | None:
    texts = ("token_file", "ca_file", "grafana", "endpoint_url")
    checks = (
        (entry.get("level") not in LEVELS, "level is basic, advanced or disabled"),
        *((not _is_seconds(entry.get(key, 1)), f"{key} is no number of seconds above 0")
          for key in ("interval_s", "timeout_s")),
        (not _is_count(entry.get("samples_limit", 1)), "samples_limit is no whole number above 0"),
        (not _are_headers(entry.get("headers", {})), "headers are no object of names and texts"),
        (not _are_hosts(entry.get("hosts", [])), "hosts is no list of hosts"),
        *((not isinstance(entry.get(key, ""), str | None), f"{key} is no text") for key in texts),
        *((bool(entry.get(key)) and not _is_http(entry[key]), f"{key} is no http address")
          for key in ("grafana", "endpoint_url")),
    )  # fmt: skip
    return next((said for is_wrong, said in checks if is_wrong), None)


def _is_http(url: object) -> bool:
    try:
        parts = urlsplit(str(url))
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_seconds(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and isfinite(value) and 0 < value <= LONGEST_S  # type: ignore[arg-type,operator]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def _are_headers(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(
        isinstance(text, str) and text.isprintable() and text.isascii() and _HEADER.fullmatch(name)
        for name, text in value.items()
    )


def _are_hosts(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and all(isinstance(one, str) and one for one in value)  # type: ignore[attr-defined]
