"""Which alarms of one layout come to the same findings, though at other steps?

A fault that stays is alarmed about again and again. What the rules make of it then is the same,
and a service that reads thousands of alarms a second need not work it out each time.
"""

from witness.rules.alarm import Alarm
from witness.rules.guards import window_cautions


def likeness(alarm: Alarm) -> tuple[object, ...] | None:
    """Give all that the findings of an alarm depend on, beside the layout of its job.

    None where its step, its passes or its digests matter as well: no other alarm is like it.
    """
    if alarm.digests is not None or window_cautions(alarm):
        return None
    return (
        alarm.check,
        alarm.nonfinite,
        alarm.mismatched_pairs,
        alarm.culprits,
        alarm.verdicts,
        alarm.suspects,
        alarm.suspects_state,
        alarm.world_size,
        alarm.peer_offset,
    )
