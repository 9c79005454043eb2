"""How does a training job leave what its checks found, on disk at once and at the service soon?"""

from witness.report.delivery import Options
from witness.report.hold import (
    Choice,
    Hold,
    HoldUnreadableError,
    choose,
    latest_safe,
    leave_behind,
    read_holds,
    release,
    write_hold,
)
from witness.report.reporter import Reporter
from witness.report.resume_floor import ResumeFloor, ask_resume_floor
from witness.wire import Envelope

__all__ = [
    "Choice",
    "Envelope",
    "Hold",
    "HoldUnreadableError",
    "Options",
    "Reporter",
    "ResumeFloor",
    "ask_resume_floor",
    "choose",
    "latest_safe",
    "leave_behind",
    "read_holds",
    "release",
    "write_hold",
]
