"""Which sources hold a cluster's metrics?

From the setting WITNESS_SOURCES: `{"alpine": [{"url": "http://…"}]}`, or `{"alpine": [{"kind":
"amp", "region": "…", "eks_cluster": "…"}]}` for a cluster whose add-on says where. An entry that
cannot be used is a source that refuses and says why; it never stops the service from starting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from app.sources import discovery, entries, sigv4
from app.sources.add_on import AddOnSettings, Allowed
from app.sources.ports import About, MetricSource, Pulled, Question, Refused
from app.sources.prometheus import PrometheusSource
from app.sources.transport import Transport, bearer

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


def sources(setting: Mapping[str, Sequence[Mapping[str, Any]]]) -> ConfiguredSources:
    """Set up a source for each entry of the setting; touches no file and no network."""
    return ConfiguredSources(
        {
            cluster: tuple(
                _source(f"{cluster}/{place + 1}", entry) for place, entry in enumerate(listed)
            )
            for cluster, listed in setting.items()
        }
    )


def _source(name: str, entry: Mapping[str, Any]) -> MetricSource:
    wrong = entries.wrong(entry)
    if wrong is not None:
        return BrokenSource(name, wrong)
    kind, region = entry.get("kind", "prometheus"), entry.get("region")
    headers = dict(entry.get("headers", {}))
    signer = (
        sigv4.signed(str(region), headers)
        if kind == "amp"
        else bearer(headers, entry.get("token_file"))
    )
    timeout_s = float(entry.get("timeout_s", TIMEOUT_S))
    transport = Transport(signer, timeout_s, entry.get("ca_file"))
    given = entry.get("url")
    known = About(
        name, given or f"the add-on of {entry.get('eks_cluster')}", entry.get("level"),
        entry.get("interval_s"), entry.get("grafana"),
    )  # fmt: skip
    found = _add_on(entry) if entry.get("eks_cluster") else None
    url: Callable[[], str] = partial(_as_given, str(given)) if given or not found else found.url
    parameters = {"timeout": f"{max(round(timeout_s * 1000), 1)}ms"}
    if kind == "amp":
        limit = entry.get("samples_limit", SAMPLES_LIMIT)
        parameters["max_samples_processed_error_threshold"] = str(limit)
    if kind == "thanos":
        # Without this a store that does not answer fails the query; with it, a warning says so.
        parameters["partial_response"] = "true"
    return PrometheusSource(known, url, transport, parameters, found.complete if found else None)


def _add_on(entry: Mapping[str, Any]) -> AddOnSettings:
    cluster, region = str(entry["eks_cluster"]), str(entry["region"])
    allowed = Allowed(
        tuple(entry.get("hosts", ())),
        signs_for=region if entry.get("kind") == "amp" else None,
        tells=bool(entry.get("token_file") or entry.get("headers")),
    )
    ask = partial(discovery.describe, cluster, region, entry.get("endpoint_url"))
    return AddOnSettings(cluster, ask, allowed.checked)


def _as_given(url: str) -> str:
    return url.rstrip("/")
