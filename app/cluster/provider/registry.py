"""Who owns the machines of a cluster?

From the setting WITNESS_PROVIDERS: `{"alpine": {"kind": "hyperpod", "cluster": "name or ARN",
"region": "us-west-2"}}`; with `"mode": "record"` orders are only written down. A name that is not
in it is a dry run. An entry that cannot be used is told by its status, and refuses everything; it
never stops the service from starting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.cluster.errors import ClusterError
from app.cluster.order_file import ORDERS_FILE, OrderFile
from app.cluster.provider import gke_entry
from app.cluster.provider.calls import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, Access
from app.cluster.provider.dry_run import DryRunProvider, MisconfiguredProvider
from app.cluster.provider.gke import GkeProvider
from app.cluster.provider.hyperpod import HyperpodProvider
from app.cluster.provider.ports import ProviderPort
from app.cluster.provider.recording import RecordingProvider

_KNOWN = {
    "kind", "cluster", "region", "endpoint_url", "profile", "mode", "connect_timeout_s",
    "read_timeout_s",
}  # fmt: skip
_TEXTS = ("kind", "cluster", "region", "endpoint_url", "profile", "mode")
_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]*):[0-9]{12}:cluster/[a-z0-9]{12}")
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")
_REGION = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}")


class Providers(Mapping[str, ProviderPort]):
    """The configured providers by cluster, and a dry run for every other name."""

    def __init__(
        self,
        ports: Mapping[str, ProviderPort],
        real: tuple[HyperpodProvider | GkeProvider, ...] = (),
    ) -> None:
        """Keep the ports, and what stands behind them and holds connections."""
        self._ports, self._real = dict(ports), real

    def __getitem__(self, name: str) -> ProviderPort:
        """Give a configured provider; a KeyError for any other name."""
        return self._ports[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the configured names."""
        return iter(self._ports)

    def __len__(self) -> int:
        """Count the configured providers."""
        return len(self._ports)

    def port(self, name: str) -> ProviderPort:
        """Give the provider of this cluster, or a dry run that says that there is none."""
        return self._ports.get(name) or DryRunProvider(name)

    def preload(self) -> None:
        """Import what speaks to providers, where there is one to speak to."""
        for one in self._real:
            with suppress(ClusterError):
                one.load()

    def close(self) -> None:
        """Close all connections."""
        for one in self._real:
            one.close()


def providers(
    entries: Mapping[str, Mapping[str, Any]],
    *,
    read_timeout_s: float = READ_TIMEOUT_S,
    folder: Path = Path("var"),
) -> Providers:
    """Set up a port for each entry of the setting; touches no file and no network.

    `folder` is where recorded orders are kept.
    """
    file = OrderFile(folder / ORDERS_FILE)
    ports: dict[str, ProviderPort] = {}
    real: list[HyperpodProvider | GkeProvider] = []
    for name, entry in entries.items():
        google = entry.get("kind") == "gke"
        wrong = gke_entry.wrong_with(entry) if google else _wrong_with(entry)
        if wrong is not None:
            ports[name] = MisconfiguredProvider(name, wrong)
            continue
        made: HyperpodProvider | GkeProvider
        if google:
            made = gke_entry.provider(name, entry)
        else:
            made = HyperpodProvider(name, entry["cluster"], _access(entry, read_timeout_s))
        real.append(made)
        ports[name] = RecordingProvider(made, file) if entry.get("mode") == "record" else made
    return Providers(ports, tuple(real))


def _wrong_with(entry: Mapping[str, Any]) -> str | None:
    """Find what is wrong with an entry; None: nothing that can be seen without asking."""
    unknown = sorted(set(entry) - _KNOWN)
    cluster, url = str(entry.get("cluster") or ""), str(entry.get("endpoint_url") or "")
    region = str(entry.get("region") or "")
    rules = (
        (bool(unknown), f"it has unknown keys: {', '.join(unknown)}"),
        (any(entry.get(key) is not None and not isinstance(entry[key], str) for key in _TEXTS),
         "one of its values is no text"),
        (entry.get("kind") != "hyperpod", "its kind is neither hyperpod nor gke"),
        (not (_ARN.fullmatch(cluster) or _NAME.fullmatch(cluster)),
         "it names no cluster, by name or by ARN"),
        (bool(region) and not _REGION.fullmatch(region), "its region is none"),
        (not _region_of(entry), "it names no region"),
        (bool(url) and not url.startswith(("http://", "https://")), "its endpoint_url is none"),
        (entry.get("mode") not in (None, "act", "record"), "its mode is neither act nor record"),
        (not _has_limits(entry), "its time limits are no positive numbers"),
    )  # fmt: skip
    return next((words for broken, words in rules if broken), None)


def _region_of(entry: Mapping[str, Any]) -> str | None:
    """Give the region that is named, or that of the ARN: a wrong guess asks another fleet."""
    arn = _ARN.fullmatch(str(entry.get("cluster") or ""))
    return str(entry.get("region") or "") or (arn.group(1) if arn else None)


def _has_limits(entry: Mapping[str, Any]) -> bool:
    limits = [entry.get("connect_timeout_s", 1), entry.get("read_timeout_s", 1)]
    try:
        return all(0 < float(one) < 3600 for one in limits)
    except (TypeError, ValueError):
        return False


def _access(entry: Mapping[str, Any], read_timeout_s: float) -> Access:
    return Access(
        region=_region_of(entry),
        endpoint_url=entry.get("endpoint_url") or None,
        profile=entry.get("profile") or None,
        connect_s=float(entry.get("connect_timeout_s", CONNECT_TIMEOUT_S)),
        read_s=float(entry.get("read_timeout_s", read_timeout_s)),
    )
