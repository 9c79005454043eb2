"""Is a cluster whose orders are only recorded read for real, and left as it is?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cluster.order_file import ORDERS_FILE
from app.cluster.ports import LabelOrder, Outcome, Standing
from app.cluster.registry import Clusters, clusters
from tests.cluster.conftest import NODE_1, UID_1, request
from tests.doubles.kubernetes import KubernetesDouble


@pytest.fixture
def recorded(double: KubernetesDouble, tmp_path: Path) -> Clusters:
    """Connect to a cluster so that orders are only recorded."""
    entry = {"kubeconfig": str(double.kubeconfig(tmp_path / "config")), "mode": "record"}
    return clusters({"alpine": entry}, folder=tmp_path)


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / ORDERS_FILE).read_text().splitlines()]


def test_everything_is_read_and_every_order_is_written_down(
    recorded: Clusters, double: KubernetesDouble, tmp_path: Path
) -> None:
    port = recorded.port("alpine")
    assert (port.name, port.status().kind, port.status().can_act) == ("alpine", "recording", False)
    assert port.version() == "v1.20.2"
    assert len(port.nodes()) == 4
    assert len(port.some_nodes({}, 2).nodes) == 2
    assert port.pods_on(NODE_1) == ()
    assert port.can() != ()
    for result in (
        port.cordon(request()),
        port.uncordon(request()),
        port.order(request(), LabelOrder.REPLACE),
    ):
        assert result.outcome is Outcome.DRY_RUN
        assert result.message.endswith("nothing was changed.")
        assert result.state is not None
    assert port.verify_cordon(request()).standing is not Standing.HOLDS
    assert double.calls == [] or not double.changes()
    written = lines(tmp_path)
    assert [line["order"] for line in written] == ["cordon", "uncordon", "label"]
    assert written[0]["asked"]["patch"]["spec"]["unschedulable"] is True
    assert written[0]["asked"]["node_read"]["uid"] == UID_1
    assert written[2]["asked"]["label"] == "replace"
    recorded.close()


def test_a_node_that_cannot_be_read_is_recorded_with_the_reason(
    recorded: Clusters, tmp_path: Path
) -> None:
    result = recorded["alpine"].cordon(request("hyperpod-i-0c0ffee0000000099"))
    assert result.outcome is Outcome.DRY_RUN
    assert "no" in lines(tmp_path)[0]["asked"]["node_not_read"]
    recorded.close()


def test_an_entry_that_cannot_be_used_is_told_also_where_orders_are_only_recorded() -> None:
    port = clusters({"alpine": {"mode": "record"}}).port("alpine")
    assert port.status().kind == "misconfigured"
    wrong = clusters({"alpine": {"in_cluster": True, "mode": "perhaps"}}).port("alpine")
    assert "neither act nor record" in wrong.status().message
