"""Is a cluster's log group the one of the cluster as it is today?"""

from __future__ import annotations

import pytest

from app.sources import log_groups
from app.sources.log_groups import LogGroup
from app.sources.ports import Away, Refused
from tests.doubles.sagemaker import SagemakerDouble


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_a_cluster_that_was_made_again_has_another_group(monkeypatch: pytest.MonkeyPatch) -> None:
    with SagemakerDouble() as double:
        group = LogGroup(double.cluster.name, "us-west-2", double.url)
        first = group.name()
        double.cluster.id = "zzzz00000000"
        assert group.name() == first
        monkeypatch.setattr(log_groups, "KEEP_S", 0.0)
        group._next = 0.0
        assert group.name().endswith("/zzzz00000000")
        double.cluster.name = "another"
        with pytest.raises(Refused, match="SageMaker has no cluster"):
            group.name()
    group.close()


def test_what_was_told_counts_while_sagemaker_is_away() -> None:
    with SagemakerDouble() as double:
        group = LogGroup(double.cluster.name, "us-west-2", double.url)
        unknown = LogGroup(double.cluster.name, "us-west-2", double.url)
        first = group.name()
    group._next = 0.0
    assert group.name() == first
    with pytest.raises(Away):
        unknown.name()
    group.close()
    unknown.close()
