"""Do the settings say who owns a cluster's machines, and what is wrong where one cannot be used?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cluster.provider.registry import Providers
from app.config import Settings
from app.main import make_context
from tests.actions.service import Person, Service
from tests.doubles.sagemaker import SagemakerDouble


@pytest.fixture
def entries(sagemaker: SagemakerDouble) -> dict[str, Any]:
    """Name one that acts, one that records, one that is wrong, and one that does not exist."""
    sagemaker.cluster.autoscaler = "Karpenter"
    sagemaker.cluster.groups["gpu"].patching = "DrainFirst"
    return {
        "alpine": sagemaker.entry(),
        "basalt": sagemaker.entry(mode="record"),
        "cedar": {"kind": "hyperpod"},
        "dune": sagemaker.entry(cluster="other"),
    }


@pytest.fixture
def viewer(entries: dict[str, Any], migrated_sqlite_url: str, tmp_path: Path) -> Iterator[Person]:
    """Sign somebody in who may only look."""
    settings = Settings(database_url=migrated_sqlite_url, data_dir=tmp_path, providers=entries)
    service = Service(make_context(settings))
    yield service.person("viewer")
    service.close()
    assert isinstance(service.context.providers, Providers)
    service.context.providers.close()


def text(page: str) -> str:
    """Give the words of a page, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split()).replace(" :", ":")


def test_every_owner_is_listed_and_says_when_asked_what_it_does_by_itself(
    viewer: Person, sagemaker: SagemakerDouble
) -> None:
    page = text(viewer.get("/settings"))
    assert "alpine SageMaker HyperPod, cluster alpine in us-west-2" in page
    assert "only recorded SageMaker HyperPod" in page
    assert "misconfigured The entry of cedar in WITNESS_PROVIDERS cannot be used" in page
    assert sagemaker.requests == []
    page = text(viewer.get("/settings/provider?name=alpine"))
    assert "Automatic: failing machines are restarted or replaced without asking here" in page
    assert "Karpenter: a replaced machine comes back only when pods wait for one" in page
    assert "DrainFirst: lifts cordons" in page
    assert "knows no such cluster" in text(viewer.get("/settings/provider?name=dune"))
    assert "names no cluster" in text(viewer.get("/settings/provider?name=cedar"))
    assert viewer.http.get("/settings/provider?name=other").status_code == 404
