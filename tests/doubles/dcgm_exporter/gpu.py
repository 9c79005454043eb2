"""What do one GPU's sensors and counters show as time goes by?

Slow sensors wander around where the load puts them; nothing rises by itself but energy. What a
fault does is said by flags that `faults.py` sets.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.doubles.dcgm_exporter.metrics import METRICS

_Thing = TypeVar("_Thing", int, str)

MEMORY_MIB = 81_559
LINKS = 18
IDLE_BIT, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL = 0x1, 0x8, 0x20, 0x40
EVENT_NAMES = {IDLE_BIT: "gpu_idle", HW_SLOWDOWN: "hw_slowdown", SW_THERMAL: "sw_thermal",
               HW_THERMAL: "hw_thermal"}  # fmt: skip


@dataclass
class Gpu:
    """One GPU; `values` holds its fields by old name, `links` the CRC errors of each link."""

    index: int
    uuid: str
    random: Random
    load: float = 1.0
    hot: bool = False
    lost: bool = False
    values: dict[str, float] = field(default_factory=dict)
    links: list[int] = field(default_factory=lambda: [0] * LINKS)
    xids: deque[tuple[float, int]] = field(default_factory=deque)
    held: deque[tuple[float, int]] = field(default_factory=deque)
    blank: set[str] = field(default_factory=set)
    _wander: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with what a board shows that has been at work for weeks."""
        self.values = {one.old: 0.0 for one in METRICS}
        self.values["DEV_TOTAL_ENERGY_CONSUMPTION"] = 1e12 + self.random.randrange(10**11)
        self.values["DEV_ECC_SBE_AGG_TOTAL"] = float(self.random.randrange(20))
        self.values["DEV_PCIE_REPLAY_COUNTER"] = float(self.random.randrange(5))
        self.place = self.random.uniform(-3.0, 3.0)  # cooler at the fans
        self.step(0.0, 0.0)

    def step(self, now: float, seconds: float) -> None:
        """Let time pass until `now`."""
        load, values = self.load, self.values
        heat = 35 + 30 * load + self.place + self._near("heat", 1.0) + (24 if self.hot else 0)
        clock = 1980.0 if load else 345.0
        clock = 1200.0 + self._near("clock", 15.0) if self.hot and load else clock
        watts = 75 + 590 * load + self._near("watts", 9.0) - (180 if self.hot and load else 0)
        values["DEV_GPU_TEMP"], values["DEV_MEMORY_TEMP"] = round(heat), round(heat + 9)
        values["DEV_SM_CLOCK"], values["DEV_MEM_CLOCK"] = 15.0 * round(clock / 15), 2619.0
        values["DEV_POWER_USAGE"] = watts
        values["DEV_TOTAL_ENERGY_CONSUMPTION"] += round(watts * seconds * 1000)
        values["DEV_GPU_UTIL"] = 100.0 if load else 0.0
        values["DEV_MEM_COPY_UTIL"] = float(round(55 * load + self._near("copy", 2.0) * load))
        used = round(71_000 * load + 512)
        values["DEV_FB_USED"], values["DEV_FB_FREE"] = used, MEMORY_MIB - used
        values["PROF_GR_ENGINE_ACTIVE"] = load * (0.97 + self._near("engine", 0.004))
        values["PROF_PIPE_TENSOR_ACTIVE"] = load * (0.52 + self._near("tensor", 0.008))
        values["PROF_DRAM_ACTIVE"] = load * (0.41 + self._near("dram", 0.008))
        self._hold(now, seconds)

    def _hold(self, now: float, seconds: float) -> None:
        bits = 0 if self.load else IDLE_BIT
        if self.hot:
            bits |= HW_SLOWDOWN | SW_THERMAL | HW_THERMAL
            self.values["DEV_THERMAL_VIOLATION"] += round(0.6 * seconds * 1e9)
        self.values["DEV_CLOCKS_EVENT_REASONS"] = float(bits)
        self.held.append((now, bits))

    def xid(self, now: float, number: int) -> None:
        """Let the driver report an Xid."""
        self.values["DEV_XID_ERRORS"] = float(number)
        self.xids.append((now, number))

    def recent_xids(self, since: float) -> dict[int, int]:
        """Count the Xids of the last minutes, by number."""
        return _counted([number for at, number in self.xids if at >= since])

    def recent_events(self, since: float) -> dict[str, int]:
        """Count in how many collections of the last minutes each clock event was active."""
        while self.held and self.held[0][0] < since:
            self.held.popleft()
        active = [name for _, bits in self.held for bit, name in EVENT_NAMES.items() if bits & bit]
        return _counted(active)

    def _near(self, what: str, spread: float) -> float:
        """Wander around 0: what was a moment ago pulls, so that noise lasts for minutes."""
        before = self._wander.get(what, 0.0)
        self._wander[what] = after = 0.9 * before + 0.44 * self.random.gauss(0.0, spread)
        return after


def _counted(things: list[_Thing]) -> dict[_Thing, int]:
    return {one: things.count(one) for one in dict.fromkeys(things)}
