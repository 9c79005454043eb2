"""How does a training job leave what its checks found, on disk at once and at the service soon?"""

from witness.report.delivery import Options
from witness.report.reporter import Reporter
from witness.wire import Envelope

__all__ = ["Envelope", "Options", "Reporter"]
