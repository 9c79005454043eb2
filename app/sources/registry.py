"""Which sources hold a cluster's metrics?

From the setting WITNESS_SOURCES: `{"alpine": [{"url": "http://…"}]}`, or `{"alpine": [{"kind":
"amp", "region": "…", "eks_cluster": "…"}]}` for a cluster whose add-on says where. An entry that
cannot be used is a source that refuses and says why; it never stops the service from starting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from app.sources import discovery, sigv4
from app.sources.ports import About, MetricSource, Pulled, Question, Refused, SourceError
from app.sources.prometheus import PrometheusSource
from app.sources.transport import Transport, bearer

KINDS = ("prometheus", "amp", "mimir", "thanos", "victoriametrics")
KEYS = {
    "kind", "url", "headers", "token_file", "ca_file", "region", "eks_cluster", "level",
    "interval_s", "timeout_s", "grafana", "samples_limit", "endpoint_url",
}  # fmt: skip
LEVELS = (None, "basic", "advanced", "disabled")
TIMEOUT_S = 30.0
SAMPLES_LIMIT = 20_000_000
"""Amazon bills by samples processed: a query that would need more is refused by the service."""


class ConfiguredSources(Mapping[str, Sequence[MetricSource]]):
    """The sources by cluster; a cluster that is not named has none."""

    def __init__(self, configured: Mapping[str, Sequence[MetricSource]]) -> None:
        self._configured = dict(configured)

    def __getitem__(self, cluster: str) -> Sequence[MetricSource]:
        return self._configured[cluster]

    def __iter__(self) -> Iterator[str]:
        return iter(self._configured)

    def __len__(self) -> int:
        return len(self._configured)

    def close(self) -> None:
        """Close all connections."""
        for sources in self._configured.values():
            for one in sources:
                one.close()


class BrokenSource:
    """An entry that cannot be used: it refuses every question with the reason."""

    def __init__(self, name: str, why: str) -> None:
        self._about = About(name, "nothing")
        self._why = f"The entry {name} of WITNESS_SOURCES cannot be used: {why}."

    def about(self) -> About:
        """Say that there is nothing."""
        return self._about

    def pull(self, question: Question) -> Pulled:
        """Refuse."""
        raise Refused(self._why)

    def close(self) -> None:
        """Close nothing."""


def sources(entries: Mapping[str, Sequence[Mapping[str, Any]]]) -> ConfiguredSources:
    """Set up a source for each entry of the setting; touches no file and no network."""
    return ConfiguredSources(
        {
            cluster: tuple(
                _source(f"{cluster}/{place + 1}", entry) for place, entry in enumerate(listed)
            )
            for cluster, listed in entries.items()
        }
    )


def _source(name: str, entry: Mapping[str, Any]) -> MetricSource:
    wrong = _wrong(entry)
    if wrong is not None:
        return BrokenSource(name, wrong)
    kind, region = entry.get("kind", "prometheus"), entry.get("region")
    headers = {str(key): str(value) for key, value in entry.get("headers", {}).items()}
    signer = (
        sigv4.signed(str(region), headers)
        if kind == "amp"
        else bearer(headers, entry.get("token_file"))
    )
    transport = Transport(signer, float(entry.get("timeout_s", TIMEOUT_S)), entry.get("ca_file"))
    given = entry.get("url")
    known = About(
        name, given or f"the add-on of {entry.get('eks_cluster')}", entry.get("level"),
        entry.get("interval_s"), entry.get("grafana"),
    )  # fmt: skip
    found = _AddOn(entry) if entry.get("eks_cluster") else None
    url: Callable[[], str] = partial(_as_given, str(given)) if given or not found else found.url
    parameters = {"timeout": f"{int(entry.get('timeout_s', TIMEOUT_S))}s"}
    if kind == "amp":
        limit = int(entry.get("samples_limit", SAMPLES_LIMIT))
        parameters["max_samples_processed_error_threshold"] = str(limit)
    if kind == "thanos":
        # Without this a store that does not answer fails the query; with it, a warning says so.
        parameters["partial_response"] = "true"
    return PrometheusSource(known, url, transport, parameters, found.complete if found else None)


class _AddOn:
    """What the cluster's add-on says, asked once and again while it cannot be asked."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._cluster, self._region = str(entry["eks_cluster"]), str(entry.get("region"))
        self._endpoint_url = entry.get("endpoint_url")
        self._found: discovery.AddOn | None = None

    def _describe(self) -> discovery.AddOn:
        if self._found is None:
            self._found = discovery.describe(self._cluster, self._region, self._endpoint_url)
        return self._found

    def url(self) -> str:
        """Give the address of the metrics; raises `SourceError` where the add-on has none."""
        found = self._describe().url
        if not found:
            raise Refused(f"The add-on of {self._cluster} does not say where its metrics are.")
        return found.rstrip("/")

    def complete(self, known: About) -> About:
        """Fill in what the setting leaves open."""
        try:
            said = self._describe()
        except SourceError:
            return known
        return replace(
            known,
            level=known.level or said.level,
            interval_s=known.interval_s or said.interval_s,
        )


def _as_given(url: str) -> str:
    return url.rstrip("/")


def _wrong(entry: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an entry; None where it can be used."""
    unknown = sorted(set(entry) - KEYS)
    checks = (
        (bool(unknown), f"it has unknown keys: {', '.join(unknown)}"),
        (entry.get("kind", "prometheus") not in KINDS, f"kind is one of {', '.join(KINDS)}"),
        (
            not entry.get("url") and not entry.get("eks_cluster"),
            "it has neither url nor eks_cluster",
        ),
        (bool(entry.get("url")) and not _is_http(entry["url"]), "its url is no http address"),
        (entry.get("kind") == "amp" and not entry.get("region"), "amp needs its region"),
        (bool(entry.get("eks_cluster")) and not entry.get("region"), "eks_cluster needs a region"),
        (entry.get("level") not in LEVELS, "level is basic, advanced or disabled"),
        (not _is_number(entry.get("interval_s", 1)), "interval_s is no number above 0"),
        (not _is_number(entry.get("timeout_s", 1)), "timeout_s is no number above 0"),
        (not _is_number(entry.get("samples_limit", 1)), "samples_limit is no number above 0"),
        (not isinstance(entry.get("headers", {}), Mapping), "headers are no object"),
    )
    return next((said for is_wrong, said in checks if is_wrong), None)


def _is_http(url: object) -> bool:
    try:
        parts = urlsplit(str(url))
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
