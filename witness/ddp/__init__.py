"""What does a PyTorch DDP job import to check itself for silent data corruption?

`Guard` goes around a loop of one's own, `train` is a whole loop; `docs/training.md` has both.
"""

from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.alarms import Alarm, SilentCorruption
from witness.ddp.call_order import CallOrderError
from witness.ddp.checkpoints import CheckpointError, Checkpoints, Saved
from witness.ddp.guard import Guard
from witness.ddp.leaving import EXIT_CODE, exit_on_alarm, leave
from witness.ddp.loop import train
from witness.ddp.placement import PlacementError
from witness.ddp.schedule import Schedule

__all__ = [
    "EXIT_CODE",
    "AfterAlarm",
    "Alarm",
    "CallOrderError",
    "CheckpointError",
    "Checkpoints",
    "Guard",
    "PlacementError",
    "Saved",
    "Schedule",
    "SilentCorruption",
    "exit_on_alarm",
    "leave",
    "train",
]
