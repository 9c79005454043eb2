"""Which cluster stands behind a name?

From the setting WITNESS_CLUSTERS: `{"alpine": {"kubeconfig": "/path", "context": "name"}}` or
`{"alpine": {"in_cluster": true}}`; with `"mode": "record"` orders are only written down. A name
that is not in it is a dry run. An entry that cannot be used is told by its status; it never stops
the service from starting.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Never

from app.cluster.access import in_cluster_client, kubeconfig_client, preload
from app.cluster.api import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, Limits
from app.cluster.dry_run import DryRunCluster
from app.cluster.errors import ClusterNotConfigured
from app.cluster.kubernetes import KubernetesCluster
from app.cluster.order_file import ORDERS_FILE, OrderFile
from app.cluster.ports import ClusterPort
from app.cluster.recording import RecordingCluster

_KNOWN = {"kubeconfig", "context", "in_cluster", "mode", "connect_timeout_s", "read_timeout_s"}


class Clusters(Mapping[str, ClusterPort]):
    """The configured clusters by name, and a dry run for every other name."""

    def __init__(
        self, configured: Mapping[str, ClusterPort], real: tuple[KubernetesCluster, ...] = ()
    ) -> None:
        """Keep the ports, and what stands behind them and holds connections."""
        self._configured, self._real = dict(configured), real

    def __getitem__(self, name: str) -> ClusterPort:
        """Give a configured cluster; a KeyError for any other name."""
        return self._configured[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the configured names."""
        return iter(self._configured)

    def __len__(self) -> int:
        """Count the configured clusters."""
        return len(self._configured)

    def port(self, name: str) -> ClusterPort:
        """Give the cluster of this name, or a dry run that says that there is none."""
        return self._configured.get(name) or DryRunCluster(name)

    def preload(self) -> None:
        """Import what speaks to clusters, where there is one to speak to."""
        if self._configured:
            preload()

    def close(self) -> None:
        """Close all connections."""
        for cluster in self._real:
            cluster.close()


def clusters(
    entries: Mapping[str, Mapping[str, Any]],
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    read_timeout_s: float = READ_TIMEOUT_S,
    folder: Path = Path("var"),
) -> Clusters:
    """Set up a port for each entry of the setting; touches no file and no network.

    `folder` is where recorded orders are kept.
    """
    limits = Limits(connect_timeout_s, read_timeout_s)
    file = OrderFile(folder / ORDERS_FILE)
    real = {name: _cluster(name, entry, limits) for name, entry in entries.items()}
    ports: dict[str, ClusterPort] = {
        name: RecordingCluster(port, file) if entries[name].get("mode") == "record" else port
        for name, port in real.items()
    }
    return Clusters(ports, tuple(real.values()))


def _cluster(name: str, entry: Mapping[str, Any], limits: Limits) -> KubernetesCluster:
    """Read one entry; what is wrong with it is kept as the sentence that its status will tell."""
    try:
        own = Limits(
            float(entry.get("connect_timeout_s", limits.connect_s)),
            float(entry.get("read_timeout_s", limits.read_s)),
        )
    except (TypeError, ValueError):
        return _wrong(name, "its time limits are no numbers")
    unknown = sorted(set(entry) - _KNOWN)
    if unknown:
        return _wrong(name, f"it has unknown keys: {', '.join(unknown)}")
    if entry.get("mode") not in (None, "act", "record"):
        return _wrong(name, "its mode is neither act nor record")
    path, context = entry.get("kubeconfig"), entry.get("context")
    if entry.get("in_cluster") is True:
        if path or context:
            return _wrong(name, "in_cluster and kubeconfig exclude each other")
        return KubernetesCluster(name, in_cluster_client, "the pod's own account", own)
    if not path and not context:
        return _wrong(name, "it names neither a kubeconfig nor in_cluster")
    through = f"kubeconfig {path or 'of the user'}" + (f", context {context}" if context else "")
    return KubernetesCluster(name, partial(kubeconfig_client, path, context), through, own)


def _wrong(name: str, why: str) -> KubernetesCluster:
    """Make a cluster that answers every question with what is wrong with its entry."""
    sentence = f"The entry of cluster {name} in WITNESS_CLUSTERS cannot be used: {why}."
    return KubernetesCluster(name, _raiser(sentence), "nothing")


def _raiser(sentence: str) -> Callable[[], Never]:
    def load() -> Never:
        raise ClusterNotConfigured(sentence)

    return load
