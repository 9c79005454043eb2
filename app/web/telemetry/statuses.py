"""In which words is it said what telemetry says?  None of them is green."""

from __future__ import annotations

WORDS = {
    "risen": "risen",
    "nothing_found": "nothing found",
    "not_collected": "not collected",
    "refused": "refused",
}
CHIPS = {"risen": "found", "nothing_found": "", "not_collected": "unknown", "refused": "unknown"}
"""The kind of the chip: evidence that was collected, looked at, or unknown."""
EVIDENCE = {
    "risen": "DCGM telemetry: something rose that can point at the hardware.",
    "nothing_found": "DCGM telemetry: nothing found. This clears nothing.",
    "refused": "DCGM telemetry: refused by its source.",
    "not_collected": "DCGM telemetry: not collected.",
}
