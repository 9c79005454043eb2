"""Which outside world do the tests of orders share?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.kubernetes.double import KubernetesDouble
from tests.doubles.sagemaker import Platform, SagemakerDouble
from tests.orders.yard import Yard, furnish, instance, make_context

MakeYard = Callable[..., Yard]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign as nobody in particular, and ask no metadata service of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def make_yard(migrated_sqlite_url: str, tmp_path: Path) -> Iterator[MakeYard]:
    """Give a function that sets up a cluster of machines, on the embedded database."""
    yield from _yards(migrated_sqlite_url, tmp_path)


@pytest.fixture
def make_yard_on_each(migrated_url: str, tmp_path: Path) -> Iterator[MakeYard]:
    """Give the same, once on each kind of database."""
    yield from _yards(migrated_url, tmp_path)


def _yards(url: str, tmp_path: Path) -> Iterator[MakeYard]:
    with ExitStack() as stack:

        def make(machines: int = 4, **cluster: Any) -> Yard:
            ids = tuple(instance(number) for number in range(1, machines + 1))
            sagemaker = stack.enter_context(SagemakerDouble(ids, **cluster))
            kubernetes = stack.enter_context(KubernetesDouble({"nodes": []}))
            if cluster.get("orchestrator", "Eks") == "Eks":
                Platform(sagemaker, kubernetes)
            context = make_context(url, tmp_path, sagemaker, kubernetes)
            stack.callback(context.store.close)
            stack.callback(context.clusters.close)  # type: ignore[attr-defined]
            stack.callback(context.providers.close)  # type: ignore[attr-defined]
            furnish(context, range(1, machines + 1))
            return Yard(context, sagemaker, kubernetes)

        yield make


@pytest.fixture
def yard(make_yard: MakeYard) -> Yard:
    """Give a cluster of four machines."""
    return make_yard()
