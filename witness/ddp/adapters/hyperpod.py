"""What does a HyperPodPyTorchJob need so that HyperPod's agent acts on an alarm?

No code: the reporter writes the line `SDC_ALARM {json}` unless WITNESS_SINKS says otherwise, and a
rule in the job's spec has the agent look for it in what the workers write to standard output.
"""

from __future__ import annotations

import json
from typing import Any

from witness.report.sinks.log_line import MARK

# The agent matches from the line's start, and there the launcher's prefix stands.
ANY_ALARM = rf".*{MARK} \{{.*"
NAMED_HERE = rf'.*{MARK} \{{.*"here":true.*'


def log_rule(pattern: str = ANY_ALARM, name: str = "SilentCorruption") -> str:
    """Give the YAML of one rule for `spec.runPolicy.logMonitoringConfiguration`.

    With `ANY_ALARM` every node is at fault; with `NAMED_HERE` only the nodes whose ranks the alarm
    names, which is what should count for HyperPod's record of repeat offenders, but an alarm that
    names nobody then matches nowhere. Either way the operator restarts the job at once.
    """
    named, matched = (text.replace("'", "''") for text in (name, pattern))
    return f"- name: '{named}'\n  logPattern: '{matched}'\n  faultOnMatch: true\n"


def alarm_in(line: str) -> dict[str, Any] | None:
    """Read a worker's log line, whatever stands before the mark; None where it is no alarm."""
    _, mark, rest = line.partition(f"{MARK} ")
    if not mark:
        return None
    try:
        said = json.loads(rest)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
