"""Which Google project stands behind an entry of WITNESS_PROVIDERS of the kind gke?

`{"glacier": {"kind": "gke", "project": "my-project"}}`: hosts of other projects are never reported.
The token is the pod's own, from the metadata server, or the content of `token_file`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.cluster.provider.compute import API, METADATA, Compute
from app.cluster.provider.gke import GkeProvider

_KNOWN = {"kind", "project", "endpoint_url", "token_url", "token_file", "mode"}
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")


def wrong_with(entry: Mapping[str, Any]) -> str | None:
    """Find what is wrong with an entry; None: nothing that can be seen without asking."""
    unknown = sorted(set(entry) - _KNOWN)
    if unknown:
        return f"it has unknown keys: {', '.join(unknown)}"
    if any(not isinstance(text, str) for text in entry.values()):
        return "one of its values is no text"
    if not _PROJECT.fullmatch(entry.get("project") or ""):
        return "it names no project"
    for key in ("endpoint_url", "token_url"):
        if entry.get(key) and not entry[key].startswith(("http://", "https://")):
            return f"its {key} is none"
    if entry.get("mode") not in (None, "act", "record"):
        return "its mode is neither act nor record"
    return None


def provider(name: str, entry: Mapping[str, Any]) -> GkeProvider:
    """Set the provider of an entry up; touches no file and no network."""
    compute = Compute(
        entry.get("endpoint_url") or API,
        entry.get("token_url") or METADATA,
        entry.get("token_file") or None,
    )
    return GkeProvider(name, entry["project"], compute)
