"""Does every name have a provider that says honestly what stands behind it?"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.cluster.errors import ClusterNotConfigured
from app.cluster.order_file import ORDERS_FILE
from app.cluster.provider.ports import Answer, ProviderPort, TestRequest
from app.cluster.provider.registry import providers
from tests.doubles.sagemaker import SagemakerDouble
from tests.provider.conftest import IDS

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
REQUEST = TestRequest({"gpu": IDS[:2]}, ("InstanceStress",))


def ordered(port: ProviderPort) -> list[Answer]:
    """Order everything that there is to order; give what became of each machine."""
    answers = [*port.replace(IDS[:1]), *port.reboot(IDS[:1]), *port.test(REQUEST)]
    return [one.answer for one in answers]


def reads_nothing(port: ProviderPort, words: str) -> None:
    """Expect that every question is refused with these words."""
    for ask in (
        port.fleet,
        lambda: port.machine(IDS[0]),
        port.machines,
        lambda: port.test_runs(LONG_AGO),
        lambda: port.events(None, LONG_AGO),
    ):
        with pytest.raises(ClusterNotConfigured, match=words):
            ask()


def test_a_name_that_is_not_configured_is_a_dry_run() -> None:
    port = providers({}).port("alpine")
    words = "dry run: no provider of machines is configured for alpine"
    assert (port.name, port.status().kind, port.status().message) == ("alpine", "dry run", words)
    assert not port.status().can_act
    reads_nothing(port, words)
    assert set(ordered(port)) == {Answer.DRY_RUN}
    assert port.replace(IDS[:1])[0].message == (
        f"{words}. It would have been replaced; nothing was sent."
    )


def test_a_configured_name_acts(sagemaker: SagemakerDouble, port: ProviderPort) -> None:
    status = port.status()
    assert status.can_act
    assert (status.kind, port.name) == ("hyperpod", "alpine")
    assert status.message == "SageMaker HyperPod, cluster alpine in us-west-2"
    assert sagemaker.requests == []


GOOD = {"kind": "hyperpod", "cluster": "alpine", "region": "us-west-2"}
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"kind": "ec2"}, "its kind is neither hyperpod nor gke"),
    ({"cluster": None}, "names no cluster"),
    ({"cluster": "a_b"}, "names no cluster"),
    ({"cluster": "arn:aws:eks:us-west-2:111122223333:cluster/alpine"}, "names no cluster"),
    ({"region": None}, "names no region"),
    ({"region": "west"}, "its region is none"),
    ({"region": 2}, "no text"),
    ({"mode": "maybe"}, "neither act nor record"),
    ({"endpoint_url": "file:///etc"}, "its endpoint_url is none"),
    ({"read_timeout_s": "soon"}, "no positive numbers"),
    ({"read_timeout_s": 0}, "no positive numbers"),
    ({"clustre": "alpine"}, "unknown keys: clustre"),
]


@pytest.mark.parametrize(("change", "words"), BROKEN)
def test_an_entry_that_cannot_be_used_is_told_and_refuses_everything(
    change: dict[str, Any], words: str
) -> None:
    port = providers({"alpine": {**GOOD, **change}}).port("alpine")
    status = port.status()
    assert status.kind == "misconfigured"
    assert not status.can_act
    assert words in status.message
    reads_nothing(port, words)
    assert set(ordered(port)) == {Answer.REFUSED}


def test_a_profile_that_is_not_there_is_told_by_the_status(
    sagemaker: SagemakerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    port = providers({"alpine": sagemaker.entry(profile="nobody")}).port("alpine")
    assert port.status().kind == "misconfigured"
    assert "nobody" in port.status().message
    assert set(ordered(port)[:2]) == {Answer.FAILED}
    with pytest.raises(ClusterNotConfigured):
        port.fleet()
    assert sagemaker.requests == []


def test_what_is_only_recorded_is_read_for_real_and_written_down_unsent(
    sagemaker: SagemakerDouble, tmp_path: Path
) -> None:
    configured = providers({"alpine": sagemaker.entry(mode="record")}, folder=tmp_path)
    port = configured.port("alpine")
    assert port.status().kind == "recording"
    assert not port.status().can_act
    assert port.fleet().name == "alpine"
    assert port.machine(IDS[0]).status == "Running"
    assert len(port.machines()) == 4
    assert port.events(None, LONG_AGO) == ()
    assert port.test_runs(LONG_AGO) == ()
    assert set(ordered(port)) == {Answer.DRY_RUN}
    assert sagemaker.calls == []
    lines = [json.loads(line) for line in (tmp_path / ORDERS_FILE).read_text().splitlines()]
    assert [(line["cluster"], line["order"]) for line in lines] == [
        ("alpine", "replace"), ("alpine", "reboot"), ("alpine", "test"),
    ]  # fmt: skip
    assert lines[0]["asked"] == {"instance_ids": [IDS[0]]}
    assert lines[2]["asked"] == {"machines": {"gpu": list(IDS[:2])}, "checks": ["InstanceStress"]}
    assert (tmp_path / ORDERS_FILE).stat().st_mode & 0o077 == 0
    configured.close()


def test_what_cannot_be_written_down_is_not_said_to_be(
    sagemaker: SagemakerDouble, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    port = providers({"alpine": sagemaker.entry(mode="record")}, folder=tmp_path / "file")["alpine"]
    assert set(ordered(port)) == {Answer.FAILED}
    assert "could not be written down" in port.replace(IDS[:1])[0].message
    assert sagemaker.calls == []


def test_providers_are_a_mapping_of_the_configured_ones() -> None:
    configured = providers({"alpine": GOOD, "basalt": {}})
    assert list(configured) == ["alpine", "basalt"]
    assert len(configured) == 2
    assert configured.get("other") is None
    configured.preload()
    assert configured.port("alpine") is configured["alpine"]
    configured.close()


def test_nothing_of_the_client_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "from app.cluster.provider.registry import providers\n"
        f"made = providers({{'alpine': {GOOD}}})\n"
        "print('botocore' in sys.modules)\n"
        "made.preload()\n"
        "print('botocore' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "True"]
