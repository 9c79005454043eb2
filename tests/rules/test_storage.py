"""Is a saved state on the machine's own disk told from one that outlives it, and from neither?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.storage import is_in_memory, place_of

LOCAL = (
    "file:/local/ckpt/step-20",
    "file:///ckpt/step-20",
    "FILE:///data/ckpt",
    "/local/ckpt",
    "/local_disk0/a",
    "/mnt/nvme/ckpt",
    "/mnt/nvme1n1/ckpt",
    "/mnt//nvme0/ckpt",
    "/nvme",
    "/opt/dlami/nvme/ckpt",
    "/opt/sagemaker/a",
    "/mnt/disks/ssd0/a",
    "/tmp/step-20",
    "/dev/shm/step-20",
    "memory://step-20",
)
SHARED = (
    "s3://bucket/step-20",
    "S3://bucket/step-20",
    "gs://bucket/step-20",
    "abfs://c@a.dfs.core.windows.net/x",
    "nfs://server/x",
    "hdfs:///ckpt",
    "/fsx/ckpt/step-20",
    "/mnt/fsx/ckpt",
    "/mnt/efs-1/ckpt",
    "/shared",
    "/lustre01/ckpt",
    "file:///fsx/ckpt/step-20",
    "https://store.example/x",
)
NOT_KNOWN = (
    None,
    "",
    "step-20",
    "ckpt/step-20",
    "/data/ckpt",
    "/homes/a/ckpt",
    "/localshared/ckpt",
    "/scratch/ckpt",
    "/mnt/ckpt",
    "odd://x",
    "relative/fsx/a",
)


@pytest.mark.parametrize("address", LOCAL)
def test_what_is_on_the_machine(address: str) -> None:
    assert place_of(address) == "local"


@pytest.mark.parametrize("address", SHARED)
def test_what_outlives_the_machine(address: str) -> None:
    assert place_of(address) == "shared"


@pytest.mark.parametrize("address", NOT_KNOWN)
def test_what_no_address_tells(address: str | None) -> None:
    assert place_of(address) == "not known"


def test_memory_is_told_from_disk() -> None:
    assert is_in_memory("/dev/shm/a")
    assert is_in_memory("memory://a")
    assert not is_in_memory("/dev/sda")
    assert not is_in_memory("/mnt/nvme/a")
    assert not is_in_memory(None)


@given(st.text())
def test_any_text_has_an_answer(address: str) -> None:
    assert place_of(address) in ("local", "shared", "not known")
    if is_in_memory(address):
        assert place_of(address) == "local"
