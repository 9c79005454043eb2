"""Which fields does the exporter give, under which names, types and levels?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["basic", "advanced", "extra"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One field: its name before DCGM 4.6 and since, without `DCGM_FI_`.

    `whole` says that DCGM keeps an integer; others are printed with six decimals.
    """

    old: str
    new: str
    kind: Literal["gauge", "counter"]
    level: Level
    whole: bool
    help: str

    def name(self, renamed: bool) -> str:
        """Give the metric's name."""
        return f"DCGM_FI_{self.new if renamed else self.old}"


def _metric(
    level: Level, kind: Literal["gauge", "counter"], old: str, new: str, text: str,
    *, whole: bool = True,
) -> Metric:  # fmt: skip
    return Metric(old, new or old, kind, level, whole, text)


GAUGE: Literal["gauge"] = "gauge"
COUNTER: Literal["counter"] = "counter"
METRICS: tuple[Metric, ...] = (
    _metric("basic", GAUGE, "DEV_SM_CLOCK", "", "SM clock frequency (in MHz)."),
    _metric("basic", GAUGE, "DEV_MEM_CLOCK", "", "Memory clock frequency (in MHz)."),
    _metric("basic", GAUGE, "DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS", "Memory temperature."),
    _metric("basic", GAUGE, "DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS", "GPU temperature (in C)."),
    _metric("basic", GAUGE, "DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS", "Power draw (in W).",
            whole=False),
    _metric("basic", COUNTER, "DEV_TOTAL_ENERGY_CONSUMPTION", "", "Energy since boot (in mJ)."),
    _metric("basic", COUNTER, "DEV_PCIE_REPLAY_COUNTER", "DEV_PCIE_REPLAY_TOTAL", "PCIe retries."),
    _metric("basic", GAUGE, "DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO", "GPU utilization (in %)."),
    _metric("basic", GAUGE, "DEV_MEM_COPY_UTIL", "", "Memory utilization (in %)."),
    _metric("basic", GAUGE, "DEV_XID_ERRORS", "DEV_XID_ERROR", "Value of the last XID error."),
    _metric("basic", GAUGE, "DEV_FB_FREE", "", "Framebuffer memory free (in MiB)."),
    _metric("basic", GAUGE, "DEV_FB_USED", "", "Framebuffer memory used (in MiB)."),
    _metric("basic", COUNTER, "DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "Rows remapped for uncorrectable errors."),
    _metric("basic", COUNTER, "DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_CORRECTABLE_TOTAL",
            "Rows remapped for correctable errors."),
    _metric("basic", GAUGE, "DEV_ROW_REMAP_FAILURE", "DEV_ROW_REMAP_FAILED", "Remapping failed."),
    _metric("basic", GAUGE, "PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO",
            "Ratio of time the graphics engine is active.", whole=False),
    _metric("basic", GAUGE, "PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO",
            "Ratio of cycles the tensor pipe is active.", whole=False),
    _metric("basic", GAUGE, "PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO",
            "Ratio of cycles the memory interface is active.", whole=False),
    _metric("advanced", COUNTER, "DEV_POWER_VIOLATION", "", "Throttling by power (in ns)."),
    _metric("advanced", COUNTER, "DEV_THERMAL_VIOLATION", "", "Throttling by heat (in ns)."),
    _metric("advanced", COUNTER, "DEV_ECC_SBE_VOL_TOTAL", "", "Volatile single-bit errors."),
    _metric("advanced", COUNTER, "DEV_ECC_DBE_VOL_TOTAL", "", "Volatile double-bit errors."),
    _metric("advanced", COUNTER, "DEV_ECC_SBE_AGG_TOTAL", "", "Persistent single-bit errors."),
    _metric("advanced", COUNTER, "DEV_ECC_DBE_AGG_TOTAL", "", "Persistent double-bit errors."),
    _metric("advanced", COUNTER, "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
            "DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", "NVLink flow-control CRC errors."),
    _metric("advanced", COUNTER, "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            "DEV_NVLINK_REPLAY_ERROR_TOTAL", "NVLink retries."),
    _metric("extra", GAUGE, "DEV_CLOCKS_EVENT_REASONS", "", "Clock event bits."),
    _metric("extra", GAUGE, "DEV_ROW_REMAP_PENDING", "", "Remapping waits for a reset."),
)  # fmt: skip

LINK_ERRORS = _metric("extra", COUNTER, "DEV_NVLINK_ERROR_DL_CRC", "DEV_NVLINK_CRC_ERROR_TOTAL",
                      "CRC errors of one link.")  # fmt: skip
XID_COUNT = ("DCGM_EXP_XID_ERRORS_COUNT", "Count of XID errors within the last window.")
CLOCK_COUNT = ("DCGM_EXP_CLOCK_EVENTS_COUNT", "Count of clock events within the last window.")

LEVELS: dict[Level, tuple[Level, ...]] = {
    "basic": ("basic",),
    "advanced": ("basic", "advanced"),
    "extra": ("basic", "advanced", "extra"),
}

VOLATILE = frozenset(
    {
        "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_PCIE_REPLAY_COUNTER", "DEV_XID_ERRORS",
        "DEV_POWER_VIOLATION", "DEV_THERMAL_VIOLATION", "DEV_ECC_SBE_VOL_TOTAL",
        "DEV_ECC_DBE_VOL_TOTAL", "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    }
)  # fmt: skip
"""What a reload of the driver sets back to 0."""
