"""Does every spelling of a device lead to the right one, and none to a wrong one?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.identity import gpu_uuid, instance_id, node_name

FULL = "GPU-a0000002-1111-4222-8333-000000000005"
BARE = FULL.removeprefix("GPU-")


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        BARE,
        FULL.upper(),
        FULL.lower(),
        f"b'{BARE}'",
        f"b'{FULL}'",
        f'"{FULL}"',
        f"UUID('{BARE}')",
        f"  {FULL}\n",
        BARE.replace("-", ""),
        f"GPU-{BARE.replace('-', '')}",
    ],
)
def test_spellings_of_one_gpu(text: str) -> None:
    read = gpu_uuid(text)
    assert (read.canonical, read.form, read.text) == (FULL, "full", text)
    assert read.fits(FULL)
    assert not read.fits(FULL[:-1] + "6")


@pytest.mark.parametrize("text", ["GPU-a0000002", "a0000002", "gpu-A0000002-11", "GPU-a000"])
def test_a_short_id_names_what_starts_like_it(text: str) -> None:
    read = gpu_uuid(text)
    assert (read.canonical, read.form) == (None, "short")
    assert read.fits(FULL)
    assert not read.fits("GPU-b0000002-1111-4222-8333-000000000005")


def test_four_digits_after_the_prefix_are_a_short_id_and_fewer_an_index() -> None:
    assert (gpu_uuid("GPU-1234").form, gpu_uuid("GPU-1234").prefix) == ("short", "GPU-1234")
    assert gpu_uuid("GPU-123").form == "index"
    assert gpu_uuid("1234").form == "index"


@pytest.mark.parametrize("text", ["5", "0", "nvidia5", "/dev/nvidia5", "cuda:0", "GPU-5", "gpu 7"])
def test_an_index_is_no_uuid(text: str) -> None:
    read = gpu_uuid(text)
    assert (read.canonical, read.form, read.prefix) == (None, "index", None)
    assert not read.fits(FULL)


@pytest.mark.parametrize("text", [None, "", "   ", "None", "null", "NaN", "N/A", "[N/A]"])
def test_no_uuid_at_all(text: str | None) -> None:
    read = gpu_uuid(text)
    assert (read.canonical, read.form) == (None, "missing")


@pytest.mark.parametrize(
    "text",
    [
        "GPU-00000000-0000-0000-0000-000000000000",
        f"{FULL}0",
        FULL.replace("a", "g", 1),
        "GPU-a00000021-111",
        "GPU-",
        "GPU-abc",
        "a00000",
        "1322621012345",
        "MIG-5",
        "a0000002 1111",
        "GPU-\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668",
    ],
)
def test_what_is_no_uuid(text: str) -> None:
    read = gpu_uuid(text)
    assert read.canonical is None
    assert read.form == "invalid"
    assert not read.fits(FULL)


def test_a_mig_device_counts_for_its_parent_where_the_name_holds_it() -> None:
    old = gpu_uuid(f"MIG-{FULL}/7/0")
    assert (old.canonical, old.form) == (FULL, "mig")
    new = gpu_uuid(f"mig-{BARE.upper()}")
    assert (new.canonical, new.form) == (f"MIG-{BARE}", "mig")


@given(st.text(max_size=60))
def test_any_text_is_read_and_a_canonical_form_stays_itself(text: str) -> None:
    read = gpu_uuid(text)
    if read.canonical is not None:
        assert gpu_uuid(read.canonical).canonical == read.canonical


HYPERPOD = "aws:///usw2-az1/sagemaker/cluster/hyperpod-4k2xq9mlunp-i-0c0ffee0000000002"


@pytest.mark.parametrize(
    ("node", "given", "provider", "expected"),
    [
        ("hyperpod-i-0c0ffee0000000002", None, None, "i-0c0ffee0000000002"),
        ("hyperpod-i-0c0ffee0000000002", None, HYPERPOD, "i-0c0ffee0000000002"),
        ("ip-10-1-2-3", "ip-10-1-2-3", None, None),
        (
            "ip-10-1-2-3.us-west-2.compute.internal",
            "ip-10-1-2-3.us-west-2.compute.internal",
            "aws:///us-west-2a/i-0c0ffee0000000003",
            "i-0c0ffee0000000003",
        ),
        ("i-0c0ffee0000000004", None, None, "i-0c0ffee0000000004"),
        ("hyperpod-i-1a2b3c4d", "i-1a2b3c4d", None, "i-1a2b3c4d"),
        ("hyperpod-i-0C0FFEE0000000005", "i-0C0FFEE0000000005", None, None),
        ("hyperpod-i-0c0ffee00000000", "i-0c0ffee00000000", None, None),
        ("gke-tpu-a1b2c3d4-xk9f", None, "gce://proj/us-east5-a/gke-tpu-a1b2c3d4-xk9f", None),
        ("gke-node", None, "gce://proj/us-east5-a/node-i-1a2b3c4d", None),
        ("hyperpod-worker-group-1", "worker-group-1", None, None),
        ("", "", "", None),
        (None, None, None, None),
        (None, " i-1a2b3c4d ", None, "i-1a2b3c4d"),
        (None, "aws:///us-west-2a/i-1a2b3c4d", None, "i-1a2b3c4d"),
        (None, None, "aws:///us-west-2a/i-1a2b3c4d5", None),
        (None, None, "aws:///us-west-2a/i-1a2b3c4d/x", None),
        (None, None, "aws:///us-west-2a/xi-1a2b3c4d", None),
        ("hyperpod-4k2xq9mlunp-i-1a2b3c4d", None, None, None),
        ("node-i-1a2b3c4d", None, None, None),
        (None, "i-1a2b3c4d\u0661", None, None),
    ],
)
def test_an_instance_id(
    node: str | None, given: str | None, provider: str | None, expected: str | None
) -> None:
    assert instance_id(node, given, provider) == expected


@pytest.mark.parametrize(
    ("node", "given", "provider"),
    [
        ("hyperpod-i-1a2b3c4d", "i-aaaaaaaa", None),
        ("ip-10-1-2-3", "i-aaaaaaaa", "aws:///us-west-2a/i-1a2b3c4d"),
        ("hyperpod-i-1a2b3c4d", None, "aws:///us-west-2a/i-aaaaaaaa"),
    ],
)
def test_sources_that_contradict_each_other_give_no_id(
    node: str, given: str | None, provider: str | None
) -> None:
    assert instance_id(node, given, provider) is None


@pytest.mark.parametrize(
    "text", [None, "", "  ", "None", "null", "NULL", "nan", "$(NODE_NAME)", "${NODE_NAME}", "$N"]
)
def test_what_is_no_node(text: str | None) -> None:
    assert node_name(text) is None


@pytest.mark.parametrize("text", ["ip-10-1-2-3", "none-1", "<b>x</b>", "a/../b", "$"])
def test_a_node_name_is_kept_as_it_is(text: str) -> None:
    assert node_name(f" {text} ") == text
