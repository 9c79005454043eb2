"""Which SageMaker do these tests talk to, and through which port?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from app.cluster.provider.ports import ProviderPort
from app.cluster.provider.registry import Providers, providers
from tests.doubles.sagemaker import SagemakerDouble

IDS = tuple(f"i-0c0ffee000000000{number}" for number in range(1, 5))

StartSagemaker = Callable[..., SagemakerDouble]
PortTo = Callable[..., ProviderPort]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign as nobody in particular, and ask no metadata service of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def start() -> Iterator[StartSagemaker]:
    """Start doubles; all stop at the end, and say so if they broke the service's model."""
    with ExitStack() as stack:

        def start_one(ids: tuple[str, ...] = IDS, **how: Any) -> SagemakerDouble:
            return stack.enter_context(SagemakerDouble(ids, **how))

        yield start_one


@pytest.fixture
def sagemaker(start: StartSagemaker) -> SagemakerDouble:
    """Give a cluster of four machines in the group gpu."""
    return start()


@pytest.fixture
def port_to() -> Iterator[PortTo]:
    """Connect to a double as the service does."""
    opened: list[Providers] = []

    def connect(double: SagemakerDouble, **entry: Any) -> ProviderPort:
        limits = {"connect_timeout_s": 1.0, "read_timeout_s": 5.0}
        opened.append(providers({"alpine": double.entry(**{**limits, **entry})}))
        return opened[-1].port("alpine")

    yield connect
    for one in opened:
        one.close()


@pytest.fixture
def port(sagemaker: SagemakerDouble, port_to: PortTo) -> ProviderPort:
    """Give the port to the cluster of four machines."""
    return port_to(sagemaker)
