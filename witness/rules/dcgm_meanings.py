"""What does a change of a DCGM field show, and what can it not show?

One entry for each group of fields, and for single fields that differ from their group.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a change can show, and the conclusion that must not be drawn from it."""

    shows: str
    cannot: str


MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {
        "temperature": Meaning(
            "A GPU hotter than its neighbours under the same work: cooling, mounting, load.",
            "A wrong result. Heat makes errors likelier; most hot GPUs compute correctly.",
        ),
        "margin": Meaning(
            "Degrees left before the GPU slows itself down; 0 or less: it does.",
            "A wrong result. Parts before Ada report a limit here or nothing.",
        ),
        "limit": Meaning(
            "A limit of this model, to hold a temperature against.",
            "Anything about this GPU's state. From Ada on it is a margin, not a temperature.",
        ),
        "power": Meaning(
            "What the board draws; a GPU below its neighbours may be idle or held back.",
            "A fault: power follows the work.",
        ),
        "clocks": Meaning(
            "A GPU slower than its neighbours under the same work is held back by something.",
            "Why: idle, a setting, power and heat all lower a clock. Clock events say which.",
        ),
        "clock_events": Meaning(
            "Hardware slowdown, thermal slowdown and power brake: the board protected itself.",
            "Idle, power cap and settings are normal. Hardware slowdown can show for a moment when "
            "the performance state changes.",
        ),
        "violation": Meaning(
            "Time for which clocks were held down for this reason.",
            "How long exactly: the unit is nanoseconds now and was microseconds in older versions. "
            "Power violations are normal under load.",
        ),
        "utilization": Meaning(
            "Whether the GPU was at work, and so whether its neighbours compare.",
            "Correctness: a GPU that computes wrong values is as busy as any.",
        ),
        "memory_use": Meaning(
            "How much memory the job held.",
            "Anything about faults.",
        ),
        "ecc_corrected": Meaning(
            "Single-bit errors that ECC corrected: memory cells or their wiring misbehave.",
            "A wrong result by itself, since they were corrected. ECC does not guard arithmetic: "
            "no rise says nothing about the compute units.",
        ),
        "ecc_uncorrected": Meaning(
            "Errors in memory that ECC saw and could not correct.",
            "Silent corruption: these are reported, and stop the work that touches them.",
        ),
        "remap": Meaning(
            "Memory rows were replaced by spare ones after errors.",
            "When the error happened: a remapping takes effect at the next reset.",
        ),
        "remap_state": Meaning(
            "The GPU's own statement about its memory, standing until it is reset or replaced.",
            "When it began, if it already stood in the first sample.",
        ),
        "pages": Meaning(
            "Memory pages were retired after errors (GPUs before Ampere).",
            "When the error happened; on later GPUs this stays empty.",
        ),
        "pcie": Meaning(
            "Transfers on the PCIe link were repeated: connector, riser, retimer, host.",
            "A wrong value: a repeated transfer arrives correctly. It may be the host's fault.",
        ),
        "nvlink": Meaning(
            "Transfers on NVLink were damaged and repeated, or a link had to recover.",
            "Which end is at fault: cable, switch and the other GPU see the same link.",
        ),
        "nvlink_lost": Meaning(
            "A link could not be brought back, or packets were lost.",
            "Which end is at fault: cable, switch and the other GPU see the same link.",
        ),
        "traffic": Meaning(
            "How much was transferred: whether GPUs took part in the same work.",
            "Anything about faults. Some exporters call this rate a counter.",
        ),
        "xid": Meaning(
            "The last error that the driver reported for this GPU.",
            "When it happened, unless the value changes within the samples; how often: an equal "
            "second one does not show. It stays until the driver or the exporter starts again.",
        ),
        "xid_window": Meaning(
            "Errors that the driver reported in the minutes before each sample.",
            "A sum over samples: neighbouring samples count the same error.",
        ),
        "xid_total": Meaning(
            "Errors that the driver reported since the exporter started.",
            "What happened before that, or while the exporter was down.",
        ),
        "clock_window": Meaning(
            "Clock events in the minutes before each sample.",
            "A sum over samples: neighbouring samples count the same event.",
        ),
        "clock_total": Meaning(
            "How often a clock event began since the exporter started.",
            "How long it lasted; what was already active when the exporter started.",
        ),
        "health": Meaning(
            "DCGM's own passive health watch, by subsystem.",
            "That a part is good: the watch knows only what the counters above know.",
        ),
        "recovery": Meaning(
            "What the driver says must be done with this GPU (0: nothing).",
            "Why; the Xid and the kernel log say that.",
        ),
    }
)
