"""Which cluster do these tests talk to, and what do they ask of it?"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.cluster.ports import ClusterPort, CordonRequest
from app.cluster.registry import Clusters, clusters
from tests.doubles.kubernetes import ADMIN_TOKEN, KubernetesDouble, User

DATA = Path(__file__).parent.parent / "data" / "kubernetes"
NODE_1, NODE_2, NODE_3, NODE_4 = (f"hyperpod-i-0c0ffee000000000{n}" for n in (1, 2, 3, 4))
UID_1 = "00000000-0000-4000-8000-000000000001"
AT = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)  # No microseconds: the trap of the MicroTime.

StartDouble = Callable[..., KubernetesDouble]
PortOf = Callable[..., ClusterPort]


@pytest.fixture
def start() -> Iterator[StartDouble]:
    """Start doubles, by the name of a file with their nodes and pods; all stop at the end."""
    with ExitStack() as stack:

        def start_one(case: str = "four_nodes", **how: Any) -> KubernetesDouble:
            return stack.enter_context(KubernetesDouble(DATA / f"{case}.json", **how))

        yield start_one


@pytest.fixture
def double(start: StartDouble) -> KubernetesDouble:
    """Give a double with four empty nodes."""
    return start()


@pytest.fixture
def port_of(tmp_path: Path) -> Iterator[PortOf]:
    """Connect to a double through a kubeconfig, as the service does."""
    opened: list[Clusters] = []

    def connect(
        double: KubernetesDouble, *, token: str = ADMIN_TOKEN, read_timeout_s: float = 5.0
    ) -> ClusterPort:
        file = double.kubeconfig(tmp_path / f"kubeconfig-{len(opened)}", token=token)
        entry = {"kubeconfig": str(file), "context": "double"}
        opened.append(clusters({"alpine": entry}, read_timeout_s=read_timeout_s))
        return opened[-1].port("alpine")

    yield connect
    for one in opened:
        one.close()


@pytest.fixture
def port(double: KubernetesDouble, port_of: PortOf) -> ClusterPort:
    """Give the port to the double with four empty nodes."""
    return port_of(double)


def request(node: str = NODE_1, **changes: Any) -> CordonRequest:
    """Make a request as an approval makes it."""
    values: dict[str, Any] = {
        "node": node,
        "expect_uid": None,
        "case": "C-7",
        "proposal": "P-1",
        "by": "alice@example.com",
        "reason": "rank 13: ring 2/2 mismatched at 10:15, step 30",
        "at": AT,
        "evidence_version": "e41",
    }
    return CordonRequest(**{**values, **changes})


def user(*rules: Any) -> dict[str, User]:
    """Make one more user, with the token `limited`."""
    return {"limited": User("limited", rules)}
