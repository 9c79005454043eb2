"""Which DCGM fields are read, under which names, and within which bounds?

Numbers and names: DCGM 4.6 `dcgm_fields.h`, which renamed many fields and kept their numbers; the
old names stay in use for years. Numbers from 9001 on are our own: they stand for what the exporter
derives itself and DCGM has no number for.
"""

from dataclasses import replace

from witness.rules.dcgm_rows import TEN_YEARS_NS, Family, Level, Row

__all__ = ["ROWS"]

_CLOCK = Family("gauge", "clocks", "clocks", "MHz", 0.0, 20_000.0, "hint", direction=-1)
_HEAT = Family("gauge", "temperature", "temperature", "°C", -40.0, 150.0, "hint", direction=1)
_LIMIT = Family("gauge", "temperature", "limit", "°C", -100.0, 150.0)
_MARGIN = replace(_LIMIT, meaning="margin", evidence="hint", direction=-1)
_POWER = Family("gauge", "power", "power", "W", 0.0, 10_000.0)
_ENERGY = Family("counter", "power", "power", "mJ", 0.0, TEN_YEARS_NS, resets="driver")
_BUSY = Family("gauge", "utilization", "utilization", "%", 0.0, 100.0)
# The exporter's ratios overshoot 1 a little: two clocks are divided by each other.
_RATIO = Family("gauge", "utilization", "utilization", "of 1", 0.0, 1.05, step=0.0)
_MEMORY = Family("gauge", "memory", "memory_use", "MiB", 0.0, 4e6)
_TRAFFIC = Family("gauge", "traffic", "traffic", "B/s", 0.0, 1e14, step=0.0)
# Bytes, megabytes a second or a total, as the version has it: no bound but the sign.
_NVLINK_TRAFFIC = replace(_TRAFFIC, unit="as exported", high=1e18)

_PCIE = Family("counter", "pcie", "pcie", evidence="hint", resets="driver")
_HELD_DOWN = Family("counter", "throttling", "violation", "ns", 0.0, TEN_YEARS_NS, resets="driver")
_HELD_DOWN_HINT = replace(_HELD_DOWN, evidence="hint")
_CORRECTED = Family("counter", "ecc", "ecc_corrected", evidence="hint", resets="driver")
_CORRECTED_EVER = replace(_CORRECTED, resets="kept")
_UNCORRECTED = replace(_CORRECTED, meaning="ecc_uncorrected", evidence="hardware")
_UNCORRECTED_EVER = replace(_UNCORRECTED, resets="kept")
_REMAP = Family("counter", "remap", "remap", evidence="hardware", resets="kept")
_PAGES = replace(_REMAP, meaning="pages")
_NVLINK = Family("counter", "nvlink", "nvlink", evidence="hint", resets="driver")
_NVLINK_LOST = replace(_NVLINK, meaning="nvlink_lost", evidence="hardware")
_NVLINK_RAW = replace(_NVLINK, evidence="context")
_SINCE_EXPORTER = Family("counter", "xid", "xid_total", evidence="hint", resets="exporter")

_EVENTS = Family("bit_mask", "throttling", "clock_events", high=65_535.0, evidence="hint")
_LAST_XID = Family("last_value", "xid", "xid", high=9_999.0, evidence="hint")
_RECENT = Family("window_count", "xid", "xid_window", high=1e9, evidence="hint")
_FLAG = Family("state", "remap", "remap_state", high=1.0, evidence="hardware", direction=1)
_CODE = replace(_FLAG, high=65_535.0)
_HEALTH = Family("state", "health", "health", high=100.0, evidence="hint", direction=1)

# One field is one entry, so that the table reads as one.
# fmt: off
_SENSORS = (
    Row(100, "DEV_SM_CLOCK", "SM clock", "basic", _CLOCK),
    Row(101, "DEV_MEM_CLOCK", "Memory clock", "basic", _CLOCK),
    Row(140, "DEV_MEMORY_TEMP_CELSIUS DEV_MEMORY_TEMP", "Memory temperature", "basic", _HEAT),
    Row(150, "DEV_GPU_TEMP_CELSIUS DEV_GPU_TEMP", "GPU temperature", "basic", _HEAT),
    Row(151, "DEV_MEMORY_MAX_OP_TEMP_CELSIUS DEV_MEM_MAX_OP_TEMP",
        "Highest operating temperature of the memory", "extra", _LIMIT),
    Row(152, "DEV_GPU_MAX_OP_TEMP_CELSIUS DEV_GPU_MAX_OP_TEMP",
        "Highest operating temperature", "extra", _LIMIT),
    Row(153, "DEV_GPU_TEMP_MARGIN_CELSIUS DEV_GPU_TEMP_LIMIT",
        "Margin to the slowdown temperature", "extra", _MARGIN),
    Row(155, "DEV_BOARD_POWER_WATTS DEV_POWER_USAGE", "Power", "basic", _POWER),
    Row(156, "DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since driver load", "basic", _ENERGY),
    Row(157, "DEV_BOARD_POWER_RAW_WATTS DEV_POWER_USAGE_INSTANT", "Power at one instant", "extra",
        _POWER),
    Row(158, "DEV_GPU_TEMP_SLOWDOWN_CELSIUS DEV_SLOWDOWN_TEMP", "Slowdown temperature", "extra",
        _LIMIT),
    Row(159, "DEV_GPU_TEMP_SHUTDOWN_CELSIUS DEV_SHUTDOWN_TEMP", "Shutdown temperature", "extra",
        _LIMIT),
    Row(203, "DEV_GPU_UTIL_RATIO DEV_GPU_UTIL", "GPU busy", "basic", _BUSY),
    Row(204, "DEV_MEM_COPY_UTIL", "Memory busy", "basic", _BUSY),
    Row(206, "DEV_ENC_UTIL", "Encoder busy", "basic", _BUSY),
    Row(207, "DEV_DEC_UTIL", "Decoder busy", "basic", _BUSY),
    Row(251, "DEV_FB_FREE", "Memory free", "basic", _MEMORY),
    Row(252, "DEV_FB_USED", "Memory used", "basic", _MEMORY),
    Row(253, "DEV_FB_RESERVED", "Memory reserved", "basic", _MEMORY),
    Row(449, "DEV_NVLINK_THROUGHPUT_TOTAL DEV_NVLINK_BANDWIDTH_TOTAL", "NVLink traffic", "basic",
        _NVLINK_TRAFFIC),
    Row(1001, "PROF_GR_ENGINE_UTIL_RATIO PROF_GR_ENGINE_ACTIVE", "Compute engine active", "basic",
        _RATIO),
    Row(1002, "PROF_SM_UTIL_RATIO PROF_SM_ACTIVE", "SMs active", "advanced", _RATIO),
    Row(1003, "PROF_SM_OCCUPANCY_RATIO PROF_SM_OCCUPANCY", "SM occupancy", "advanced", _RATIO),
    Row(1004, "PROF_TENSOR_UTIL_RATIO PROF_PIPE_TENSOR_ACTIVE", "Tensor cores active", "basic",
        _RATIO),
    Row(1005, "PROF_DRAM_UTIL_RATIO PROF_DRAM_ACTIVE", "Device memory active", "basic", _RATIO),
    Row(1006, "PROF_FP64_UTIL_RATIO PROF_PIPE_FP64_ACTIVE", "FP64 units active", "advanced",
        _RATIO),
    Row(1007, "PROF_FP32_UTIL_RATIO PROF_PIPE_FP32_ACTIVE", "FP32 units active", "advanced",
        _RATIO),
    Row(1008, "PROF_FP16_UTIL_RATIO PROF_PIPE_FP16_ACTIVE", "FP16 units active", "advanced",
        _RATIO),
    Row(1009, "PROF_PCIE_TX_BYTES", "PCIe sent", "basic", _TRAFFIC),
    Row(1010, "PROF_PCIE_RX_BYTES", "PCIe received", "basic", _TRAFFIC),
    Row(1011, "PROF_NVLINK_TX_BYTES", "NVLink sent", "extra", _TRAFFIC),
    Row(1012, "PROF_NVLINK_RX_BYTES", "NVLink received", "extra", _TRAFFIC),
)

_THROTTLING = (
    Row(112, "DEV_CLOCKS_EVENT_REASONS DEV_CLOCK_THROTTLE_REASONS DEV_CLOCK_THROTTLE_REASON",
        "Clock events", "extra", _EVENTS),
    Row(240, "DEV_POWER_VIOLATION", "Time held down by power", "advanced", _HELD_DOWN),
    Row(241, "DEV_THERMAL_VIOLATION", "Time held down by heat", "advanced", _HELD_DOWN_HINT),
    Row(242, "DEV_SYNC_BOOST_VIOLATION", "Time held down by sync boost", "advanced", _HELD_DOWN),
    Row(243, "DEV_BOARD_LIMIT_VIOLATION", "Time held down by a board limit", "advanced",
        _HELD_DOWN_HINT),
    Row(244, "DEV_LOW_UTIL_VIOLATION", "Time held down by low utilization", "advanced",
        _HELD_DOWN),
    Row(245, "DEV_RELIABILITY_VIOLATION", "Time held down for reliability", "advanced",
        _HELD_DOWN_HINT),
    Row(246, "DEV_TOTAL_APP_CLOCKS_VIOLATION", "Time held down by application clocks", "extra",
        _HELD_DOWN),
    Row(247, "DEV_TOTAL_BASE_CLOCKS_VIOLATION", "Time held down by base clocks", "extra",
        _HELD_DOWN),
    Row(1420, "DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", "Time under the software power cap",
        "extra", _HELD_DOWN),
    Row(1421, "DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_COUNT_NS", "Time under sync boost", "extra",
        _HELD_DOWN),
    Row(1422, "DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", "Time in software thermal slowdown",
        "extra", _HELD_DOWN_HINT),
    Row(1423, "DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", "Time in hardware thermal slowdown",
        "extra", _HELD_DOWN_HINT),
    Row(1424, "DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", "Time under the power brake",
        "extra", _HELD_DOWN_HINT),
    Row(9002, "DCGM_EXP_CLOCK_EVENTS_COUNT", "Clock events in the last minutes", "extra",
        replace(_RECENT, group="throttling", meaning="clock_window")),
    Row(9006, "DCGM_EXP_CLOCK_EVENTS_TOTAL", "Clock events since exporter start", "extra",
        replace(_SINCE_EXPORTER, group="throttling", meaning="clock_total")),
)

_MEMORY_ERRORS = (
    Row(310, "DEV_ECC_SBE_VOL_TOTAL", "Corrected memory errors since driver load", "advanced",
        _CORRECTED),
    Row(311, "DEV_ECC_DBE_VOL_TOTAL", "Uncorrected memory errors since driver load", "advanced",
        _UNCORRECTED),
    Row(312, "DEV_ECC_SBE_AGG_TOTAL", "Corrected memory errors ever", "advanced",
        _CORRECTED_EVER),
    Row(313, "DEV_ECC_DBE_AGG_TOTAL", "Uncorrected memory errors ever", "advanced",
        _UNCORRECTED_EVER),
    Row(346, "DEV_SRAM_EXCEEDED DEV_THRESHOLD_SRM", "SRAM errors above the threshold", "extra",
        replace(_FLAG, group="ecc")),
    Row(389, "DEV_BANK_REMAP_AVAIL_NONE DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
        "Memory banks without a spare row", "extra", _CODE),
    Row(390, "DEV_PAGE_RETIRED_SBE_TOTAL DEV_RETIRED_SBE", "Pages retired after corrected errors",
        "advanced", _PAGES),
    Row(391, "DEV_PAGE_RETIRED_DBE_TOTAL DEV_RETIRED_DBE",
        "Pages retired after uncorrected errors", "advanced", _PAGES),
    Row(392, "DEV_PAGE_RETIRED_PENDING DEV_RETIRED_PENDING", "Page retirement pending", "advanced",
        replace(_CODE, meaning="pages")),
    Row(393, "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "Rows remapped after uncorrectable errors", "basic", _REMAP),
    Row(394, "DEV_ROW_REMAP_CORRECTABLE_TOTAL DEV_CORRECTABLE_REMAPPED_ROWS",
        "Rows remapped after correctable errors", "basic", _REMAP),
    Row(395, "DEV_ROW_REMAP_FAILED DEV_ROW_REMAP_FAILURE", "Row remapping failed", "basic", _FLAG),
    Row(396, "DEV_ROW_REMAP_PENDING", "Row remapping pending", "extra", _FLAG),
    Row(1507, "DEV_MEMORY_UNREPAIRABLE DEV_MEMORY_UNREPAIRABLE_FLAG", "Memory cannot be repaired",
        "extra", _FLAG),
)

_LINKS = (
    Row(202, "DEV_PCIE_REPLAY_TOTAL DEV_PCIE_REPLAY_COUNTER", "PCIe replays", "basic", _PCIE),
    Row(1501, "DEV_PCIE_CORRECTABLE_ERROR_TOTAL DEV_PCIE_COUNT_CORRECTABLE_ERRORS",
        "PCIe correctable errors", "extra", _PCIE),
    Row(409, "DEV_NVLINK_CRC_FLIT_ERROR_TOTAL DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "NVLink flow-control checksum errors", "advanced", _NVLINK),
    Row(419, "DEV_NVLINK_CRC_DATA_ERROR_TOTAL DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "NVLink data checksum errors", "advanced", _NVLINK),
    Row(429, "DEV_NVLINK_REPLAY_ERROR_TOTAL DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "NVLink replays", "advanced", _NVLINK),
    Row(439, "DEV_NVLINK_RECOVERY_ERROR_TOTAL DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "NVLink recoveries", "advanced", _NVLINK),
    Row(497, "DEV_NVLINK_CRC_ERROR_TOTAL DEV_NVLINK_ERROR_DL_CRC",
        "NVLink checksum errors of links", "extra", _NVLINK),
    Row(498, "DEV_NVLINK_RECOVERY_TOTAL DEV_NVLINK_ERROR_DL_RECOVERY",
        "NVLink recoveries of links", "extra", _NVLINK),
    Row(499, "DEV_NVLINK_REPLAY_TOTAL DEV_NVLINK_ERROR_DL_REPLAY", "NVLink replays of links",
        "extra", _NVLINK),
    Row(1204, "DEV_NVLINK_RX_PACKET_MALFORMED_TOTAL "
        "DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", "NVLink malformed packets", "extra",
        _NVLINK),
    Row(1205, "DEV_NVLINK_RX_PACKET_DROPPED_TOTAL DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS",
        "NVLink packets dropped", "extra", _NVLINK),
    Row(1206, "DEV_NVLINK_RX_ERROR_TOTAL DEV_NVLINK_COUNT_RX_ERRORS", "NVLink receive errors",
        "extra", _NVLINK),
    Row(1207, "DEV_NVLINK_RX_REMOTE_ERROR_TOTAL DEV_NVLINK_COUNT_RX_REMOTE_ERRORS",
        "NVLink errors marked by the other end", "extra", _NVLINK),
    Row(1208, "DEV_NVLINK_RX_GENERAL_ERROR_TOTAL DEV_NVLINK_COUNT_RX_GENERAL_ERRORS",
        "NVLink header mismatches", "extra", _NVLINK),
    Row(1209, "DEV_NVLINK_INTEGRITY_ERROR_TOTAL DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
        "NVLink integrity errors", "extra", _NVLINK),
    Row(1211, "DEV_NVLINK_RECOVERY_SUCCESSFUL_TOTAL "
        "DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", "NVLink recoveries that worked",
        "extra", _NVLINK),
    Row(1212, "DEV_NVLINK_RECOVERY_FAILED_TOTAL DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
        "NVLink recoveries that failed", "extra", _NVLINK_LOST),
    Row(1213, "DEV_NVLINK_RECOVERY_EVENT_TOTAL DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS",
        "NVLink recoveries begun", "extra", _NVLINK),
    Row(1214, "DEV_NVLINK_RX_SYMBOL_ERROR_TOTAL DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS",
        "NVLink symbol errors before correction", "extra", _NVLINK_RAW),
    Row(1219, "DEV_NVLINK_EFFECTIVE_ERROR_TOTAL DEV_NVLINK_COUNT_EFFECTIVE_ERRORS",
        "NVLink errors after correction", "extra", _NVLINK),
    Row(1220, "DEV_NVLINK_ECC_ERROR_TOTAL DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL",
        "NVLink ECC errors", "extra", _NVLINK),
)

_DRIVER = (
    Row(230, "DEV_XID_ERROR DEV_XID_ERRORS", "Last Xid", "basic", _LAST_XID),
    Row(1523, "DEV_GPU_RECOVERY_ACTION DEV_GET_GPU_RECOVERY_ACTION", "Recovery action asked for",
        "extra", replace(_CODE, group="health", meaning="recovery")),
    Row(9001, "DCGM_EXP_XID_ERRORS_COUNT", "Xid errors in the last minutes", "extra", _RECENT),
    Row(9003, "DCGM_EXP_GPU_HEALTH_STATUS", "DCGM health watch", "extra", _HEALTH),
    Row(9005, "DCGM_EXP_XID_ERRORS_TOTAL", "Xid errors since exporter start", "extra",
        _SINCE_EXPORTER),
)

_PLACES = (
    (314, 324, "L1", "the L1 cache"),
    (316, 326, "L2", "the L2 cache"),
    (318, 328, "DEV", "device memory"),
    (320, 330, "REG", "the register file"),
    (322, 332, "TEX", "texture memory"),
    (334, 338, "SHM", "shared memory"),
    (336, 340, "CBU", "the convergence barrier unit"),
    (342, 344, "SRM", "SRAM"),
)
# fmt: on


def _located() -> tuple[Row, ...]:
    """Make the ECC counters by place: parts of fields 310 to 313, volatile and kept."""
    level: Level = "extra"
    rows = []
    for volatile, kept, mark, place in _PLACES:
        for number, span, since, corrected, uncorrected in (
            (volatile, "VOL", "since driver load", _CORRECTED, _UNCORRECTED),
            (kept, "AGG", "ever", _CORRECTED_EVER, _UNCORRECTED_EVER),
        ):
            for plus, word, adjective, family in (
                (0, "SBE", "Corrected", corrected),
                (1, "DBE", "Uncorrected", uncorrected),
            ):
                title = f"{adjective} errors in {place} {since}"
                name = f"DEV_ECC_{word}_{span}_{mark}"
                rows.append(Row(number + plus, name, title, level, replace(family, detail=True)))
    return tuple(rows)


ROWS: tuple[Row, ...] = tuple(
    sorted(
        (*_SENSORS, *_THROTTLING, *_MEMORY_ERRORS, *_LINKS, *_DRIVER, *_located()),
        key=lambda row: row.id,
    )
)
