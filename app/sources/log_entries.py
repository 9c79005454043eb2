"""Which log holds the lines of a cluster's health agents?

From the setting WITNESS_NODE_LOGS: `{"alpine": {"region": "…", "log_group": "…"}}`, or with
`hyperpod_cluster` instead, whose log group SageMaker tells. An entry that cannot be used is a log
that refuses and says why; it never stops the service from starting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from app.sources.log_groups import LogGroup
from app.sources.logs import TIMEOUT_S, BrokenLog, CloudWatchLog, NodeLog

KEYS = {
    "region", "log_group", "hyperpod_cluster", "instance_group", "timeout_s", "endpoint_url",
    "sagemaker_endpoint_url",
}  # fmt: skip
LONGEST_S = 300.0

_REGION = re.compile(r"[a-z0-9-]{1,40}")
_GROUP = re.compile(r"[.\-_/#A-Za-z0-9]{1,512}|arn:[\w#+=/:,.@-]{1,2000}")
_CLUSTER = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_INSTANCE_GROUP = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_ADDRESS = re.compile(r"https?://[\w.-]{1,253}(:\d{1,5})?/?")


class ConfiguredLogs(Mapping[str, NodeLog]):
    """The logs by cluster; a cluster that is not named has none."""

    def __init__(self, configured: Mapping[str, NodeLog]) -> None:
        self._configured = dict(configured)

    def __getitem__(self, cluster: str) -> NodeLog:
        return self._configured[cluster]

    def __iter__(self) -> Iterator[str]:
        return iter(self._configured)

    def __len__(self) -> int:
        return len(self._configured)

    def close(self) -> None:
        """Close all connections."""
        for one in self._configured.values():
            one.close()


def node_logs(entries: Mapping[str, Mapping[str, Any]]) -> ConfiguredLogs:
    """Set up a log for each entry of the setting; touches no file and no network."""
    return ConfiguredLogs({cluster: _log(cluster, entry) for cluster, entry in entries.items()})


def _log(cluster: str, entry: Mapping[str, Any]) -> NodeLog:
    why = wrong(entry)
    if why is not None:
        return BrokenLog(cluster, why)
    region, name = entry["region"], entry.get("hyperpod_cluster")
    return CloudWatchLog(
        region,
        LogGroup(name, region, entry.get("sagemaker_endpoint_url")) if name else entry["log_group"],
        entry.get("instance_group"),
        float(entry.get("timeout_s", TIMEOUT_S)),
        entry.get("endpoint_url"),
    )


def wrong(entry: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an entry; None where it can be used."""
    unknown = sorted(str(one) for one in set(entry) - KEYS)
    if unknown:
        return f"it has unknown keys: {', '.join(unknown)}"
    if bool(entry.get("log_group")) == bool(entry.get("hyperpod_cluster")):
        return "it needs one of log_group and hyperpod_cluster"
    checks = (
        ("region", _REGION, True, "region is no name of one"),
        ("log_group", _GROUP, False, "log_group is neither the name of a log group nor its ARN"),
        ("hyperpod_cluster", _CLUSTER, False, "hyperpod_cluster is no name of one"),
        ("sagemaker_endpoint_url", _ADDRESS, False, "sagemaker_endpoint_url is no http address"),
        ("instance_group", _INSTANCE_GROUP, False, "instance_group is no name of one"),
        ("endpoint_url", _ADDRESS, False, "endpoint_url is no http address"),
    )
    for key, form, is_needed, said in checks:
        value = entry.get(key)
        if value is None and not is_needed:
            continue
        if not isinstance(value, str) or not form.fullmatch(value):
            return said
    seconds = entry.get("timeout_s", TIMEOUT_S)
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not isfinite(seconds) or not 0 < seconds <= LONGEST_S:
        return f"timeout_s is no number of seconds from 0 to {LONGEST_S:g}"
    return None
