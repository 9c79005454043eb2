"""Does the double of the exporter write what an exporter writes, from the same seed the same?"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.doubles.dcgm_exporter import faults
from tests.doubles.dcgm_exporter.metrics import LINK_ERRORS, METRICS
from tests.doubles.dcgm_exporter.node import Node, Style
from tests.doubles.dcgm_exporter.over_http import history, read_back
from tests.prometheus import dcgm
from witness.rules.dcgm_fields import field_of

UUIDS = [dcgm("", gpu)["UUID"] for gpu in range(8)]


def node(*events: faults.Event, seed: int = 7, **style: object) -> Node:
    return Node(UUIDS, "hyperpod-i-0c0ffee", Style(**style), events, seed)  # type: ignore[arg-type]


def lines(page: str | None, name: str) -> list[str]:
    return [one for one in (page or "").splitlines() if one.startswith(f"{name}{{")]


def samples(page: str | None, name: str, gpu: int) -> list[tuple[Mapping[str, str], float]]:
    found = read_back(page or "")
    wanted = UUIDS[gpu]
    return [
        (labels, value)
        for _, labels, value in found
        if labels["__name__"] == name and wanted in labels.values()
    ]


def test_a_line_stands_as_the_exporter_writes_it() -> None:
    page = node().page(0.0) or ""
    assert lines(page, "DCGM_FI_DEV_SM_CLOCK")[5] == (
        f'DCGM_FI_DEV_SM_CLOCK{{gpu="5",UUID="{UUIDS[5]}",pci_bus_id="00000000:58:00.0",'
        'device="nvidia5",modelName="NVIDIA H100 80GB HBM3",Hostname="hyperpod-i-0c0ffee",'
        'DCGM_FI_DRIVER_VERSION="570.172.08",container="main",namespace="research",'
        'pod="train-worker-0"} 1980'
    )
    (power, *_) = lines(page, "DCGM_FI_DEV_POWER_USAGE")
    assert len(power.rsplit(".", 1)[1]) == 6
    (xid, *_) = lines(page, "DCGM_FI_DEV_XID_ERRORS")
    assert xid.endswith('err_code="0",err_msg="No Error"} 0')
    assert "# TYPE DCGM_FI_DEV_XID_ERRORS gauge\n" in page
    (link, *_) = lines(page, "DCGM_FI_DEV_NVLINK_ERROR_DL_CRC")
    assert link.startswith(
        f'DCGM_FI_DEV_NVLINK_ERROR_DL_CRC{{nvlink="0",gpu="0",gpu_uuid="{UUIDS[0]}"'
    )
    assert 'model_name="' in link
    assert 'hostname="' in link


def test_every_name_old_and_new_is_a_field_that_is_known() -> None:
    for metric in (*METRICS, LINK_ERRORS):
        old, new = field_of(metric.name(False)), field_of(metric.name(True))
        assert old is not None
        assert old is new
        assert old.level == metric.level or metric is LINK_ERRORS
        assert old.names[0] == metric.name(True)


def test_a_level_holds_what_the_level_holds() -> None:
    for level, count in (("basic", 18), ("advanced", 26), ("extra", 31)):
        page = node(level=level).page(0.0) or ""
        assert page.count("# TYPE ") == count
    assert len(lines(node(level="basic").page(0.0), "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL")) == 0


def test_newer_versions_differ_in_names_and_in_the_host_label() -> None:
    page = node(renamed=True, host_label="hostname", mig="1g.10gb").page(0.0) or ""
    (first, *_) = lines(page, "DCGM_FI_DEV_GPU_TEMP_CELSIUS")
    assert 'GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",hostname="hyperpod-i-0c0ffee"' in first
    assert "DCGM_FI_DEV_GPU_TEMP{" not in page


@pytest.mark.parametrize(("drops", "values"), [(True, []), (False, [9.223372036854776e18])])
def test_what_has_no_value_is_left_out_or_a_huge_number(drops: bool, values: list[float]) -> None:
    page = node(*faults.says_no_value(3, "DEV_MEMORY_TEMP"), drops_blanks=drops).page(0.0)
    found = [value for _, value in samples(page, "DCGM_FI_DEV_MEMORY_TEMP", 3)]
    assert found == values
    assert samples(page, "DCGM_FI_DEV_MEMORY_TEMP", 4)


def test_counts_over_a_window_forget() -> None:
    made = node(*faults.row_remap(1, 10.0), window_ms=60_000)
    name = "DCGM_EXP_XID_ERRORS_COUNT"
    ((before, none),) = samples(made.page(0.0), name, 1)
    assert ("xid" not in before, none) == (True, 0.0)
    assert before["window_size_in_ms"] == "60000"
    seen = {labels["xid"]: count for labels, count in samples(made.page(15.0), name, 1)}
    assert seen == {"63": 1.0, "94": 1.0}
    ((after, none),) = samples(made.page(100.0), name, 1)
    assert ("xid" not in after, none) == (True, 0.0)
    assert samples(made.page(100.0), "DCGM_FI_DEV_XID_ERRORS", 1)[0][1] == 94.0  # it stays


def test_a_collection_is_given_again_until_the_next_is_due() -> None:
    made = node(*faults.pcie_replays(0, 5.0), collect_s=30.0)
    first = made.page(0.0)
    assert made.page(29.0) == first
    assert made.page(30.0) != first


def test_a_lost_gpu_has_no_line_left_and_a_restart_gives_no_page() -> None:
    made = node(*faults.lost(2, 5.0), *faults.exporter_restart(20.0, 10.0))
    assert UUIDS[2] in (made.page(0.0) or "")
    page = made.page(6.0) or ""
    assert UUIDS[2] not in page
    assert UUIDS[3] in page
    assert made.page(20.0) is None
    assert made.page(30.0) is not None


def test_the_same_seed_gives_the_same_samples_and_another_others() -> None:
    times = [15.0 * place for place in range(20)]
    one, same, other = (history(node(seed=seed), times) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert sum(len(values) for _, values in one) == 20 * len(one)
