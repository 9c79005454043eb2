"""Which service, cluster and provider do the tests of previews share?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.actions.conftest import make_service
from tests.actions.service import Service
from tests.doubles.kubernetes.double import KubernetesDouble
from tests.doubles.sagemaker import Platform, SagemakerDouble
from tests.previews.scene import INSTANCES, Scene, crowded, post_all

__all__ = ["make_service"]

MakeScene = Callable[..., Scene]


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """A preview reads through queries that other tests run on both databases."""
    return migrated_sqlite_url


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign as nobody in particular, and ask no metadata service of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def make_scene(make_service: Callable[..., Service]) -> Iterator[MakeScene]:
    """Give a function that sets up cluster, provider and service, with one alarm."""
    with ExitStack() as stack:

        def make(
            nodes: dict[str, Any] | None = None, *, provider: bool = True, **cluster: Any
        ) -> Scene:
            kubernetes = stack.enter_context(KubernetesDouble(nodes or crowded()))
            sagemaker, more = None, {}
            if provider:
                begun = datetime.now(UTC)
                sagemaker = stack.enter_context(SagemakerDouble(INSTANCES, start=begun, **cluster))
                Platform(sagemaker, kubernetes)
                limits = {"connect_timeout_s": 1.0, "read_timeout_s": 2.0}
                more = {"providers": {"alpine": sagemaker.entry(**limits)}}
            service = make_service(kubernetes, **more)
            post_all(service)
            return Scene(service, kubernetes, sagemaker)

        yield make
