"""Does the table know every field once, under all its names?"""

from __future__ import annotations

import math

import pytest

from witness.rules.dcgm_fields import BY_ID, FIELDS, all_names, field_of, in_group
from witness.rules.dcgm_meanings import MEANINGS

# Number, name until DCGM 4.5, name since 4.6; copied from its header, not from the table.
RENAMED = [
    (112, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    (140, "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"),
    (150, "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    (153, "DCGM_FI_DEV_GPU_TEMP_LIMIT", "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS"),
    (155, "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
    (158, "DCGM_FI_DEV_SLOWDOWN_TEMP", "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS"),
    (202, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL"),
    (203, "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"),
    (230, "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"),
    (346, "DCGM_FI_DEV_THRESHOLD_SRM", "DCGM_FI_DEV_SRAM_EXCEEDED"),
    (390, "DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL"),
    (392, "DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING"),
    (
        393,
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
    ),
    (394, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL"),
    (395, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED"),
    (
        409,
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL",
    ),
    (
        439,
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL",
    ),
    (449, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"),
    (1002, "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"),
    (1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    (
        1212,
        "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
        "DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL",
    ),
    (1501, "DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS", "DCGM_FI_DEV_PCIE_CORRECTABLE_ERROR_TOTAL"),
    (1507, "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE"),
    (1523, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_GPU_RECOVERY_ACTION"),
]
UNCHANGED = [
    (100, "DCGM_FI_DEV_SM_CLOCK"),
    (156, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
    (240, "DCGM_FI_DEV_POWER_VIOLATION"),
    (241, "DCGM_FI_DEV_THERMAL_VIOLATION"),
    (245, "DCGM_FI_DEV_RELIABILITY_VIOLATION"),
    (310, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"),
    (311, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
    (312, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"),
    (313, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"),
    (343, "DCGM_FI_DEV_ECC_DBE_VOL_SRM"),
    (329, "DCGM_FI_DEV_ECC_DBE_AGG_DEV"),
    (335, "DCGM_FI_DEV_ECC_DBE_VOL_SHM"),
    (396, "DCGM_FI_DEV_ROW_REMAP_PENDING"),
    (1010, "DCGM_FI_PROF_PCIE_RX_BYTES"),
    (1423, "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"),
]
# What the add-on collects at each level and that can point at the hardware.
BASIC = {100, 101, 140, 150, 202, 230, 393, 394, 395}
ADVANCED = {241, 243, 245, 310, 311, 312, 313, 390, 391, 392, 409, 419, 429, 439}


@pytest.mark.parametrize(("number", "old", "new"), RENAMED)
def test_old_and_new_name_are_one_field(number: int, old: str, new: str) -> None:
    assert field_of(old) is field_of(new) is BY_ID[number]
    assert BY_ID[number].names[0] == new


@pytest.mark.parametrize(("number", "name"), UNCHANGED)
def test_a_name_that_stayed(number: int, name: str) -> None:
    assert field_of(name) is BY_ID[number]


def test_no_number_and_no_name_stands_twice() -> None:
    assert len(BY_ID) == len(FIELDS)
    names = [name.lower() for name in all_names()]
    assert len(names) == len(set(names))
    assert [field.id for field in FIELDS] == sorted(BY_ID)


def test_names_are_found_in_any_case_and_with_a_collectors_ending() -> None:
    assert field_of("dcgm_fi_dev_gpu_temp") is BY_ID[150]
    assert field_of("DCGM_FI_DEV_PCIE_REPLAY_COUNTER_total") is BY_ID[202]
    assert field_of("DCGM_EXP_XID_ERRORS_TOTAL") is BY_ID[9005]
    assert field_of("DCGM_EXP_XID_ERRORS_COUNT") is BY_ID[9001]
    assert field_of("DCGM_FI_DEV_SOMETHING_NEW") is None
    assert field_of("") is None


def test_levels_are_those_of_the_add_on() -> None:
    evidence = [field for field in FIELDS if field.is_evidence]
    assert {field.id for field in evidence if field.level == "basic"} == BASIC
    assert {field.id for field in evidence if field.level == "advanced"} == ADVANCED


def test_every_field_says_what_it_shows_and_cannot() -> None:
    for field in FIELDS:
        assert field.meaning.shows.endswith(".")
        assert field.meaning.cannot.endswith(".")
        assert field.title
        assert field in in_group(field.group)
    assert {id(field.meaning) for field in FIELDS} == {id(one) for one in MEANINGS.values()}


def test_bounds_hold_readings_and_refuse_blanks() -> None:
    for field in FIELDS:
        assert field.low < field.high
        assert field.plausible(0.0)
        for blank in (9.223372036854776e18, 1e19, math.nan, math.inf, -math.inf):
            assert not field.plausible(blank), field.key
    assert BY_ID[150].plausible(94.0)
    assert not BY_ID[150].plausible(2_147_483_632.0)
    assert BY_ID[153].plausible(-8.0)


def test_counters_that_the_board_keeps_are_told_from_those_of_the_driver() -> None:
    assert BY_ID[310].resets == "driver"
    assert BY_ID[312].resets == "kept"
    assert BY_ID[393].resets == "kept"
    assert BY_ID[9005].resets == "exporter"
    assert all((field.resets == "none") == (field.kind != "counter") for field in FIELDS)


def test_a_part_of_a_total_is_marked_so() -> None:
    assert {field.id for field in FIELDS if field.detail} == {*range(314, 346)}


def test_titles_inside_a_sentence() -> None:
    assert BY_ID[202].title_inside == "PCIe replays"
    assert BY_ID[230].title_inside == "last Xid"
    assert BY_ID[409].title_inside.startswith("NVLink")
    assert BY_ID[100].title_inside == "SM clock"
