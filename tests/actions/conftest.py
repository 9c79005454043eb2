"""Which running service, cluster and clock do the tests of actions share?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.config import Settings
from app.context import Context
from app.main import make_context
from tests.actions.fleet import NODES, alarm, node, rank_map
from tests.actions.service import ADMIN_TOKEN, Service
from tests.doubles.kubernetes.double import KubernetesDouble


@pytest.fixture
def cluster() -> Iterator[KubernetesDouble]:
    """Run a cluster of four GPU nodes."""
    with KubernetesDouble({"nodes": [node(name) for name in NODES]}) as double:
        yield double


@pytest.fixture
def make_service(migrated_url: str, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Give a function that serves the application on a fresh database."""
    opened: list[Service] = []

    def make(cluster: KubernetesDouble | None = None, **more: Any) -> Service:
        clusters = {}
        if cluster is not None:
            clusters = {"alpine": {"kubeconfig": str(cluster.kubeconfig(tmp_path / "config"))}}
        settings = Settings(
            database_url=migrated_url,
            data_dir=tmp_path,
            admin_token=ADMIN_TOKEN,
            clusters=clusters,
            cluster_timeout_s=1.0,
            **more,
        )
        made: Context = make_context(settings)
        opened.append(Service(made))
        return opened[-1]

    yield make
    for service in opened:
        service.close()


@pytest.fixture
def service(make_service: Callable[..., Service], cluster: KubernetesDouble) -> Service:
    """Serve the application with a cluster, one job and its alarm on rank 13."""
    made = make_service(cluster)
    made.post(rank_map(), alarm())
    return made
