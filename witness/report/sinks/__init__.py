"""Where else is an alarm told, beside the service: a log, metrics, the cluster?

Each is optional and told in the background; one that fails or hangs costs the others nothing but
their turn. None of them is a record: the spool is.
"""

from witness.report.sinks.cloudwatch import EmbeddedMetrics, PutMetrics
from witness.report.sinks.kubernetes import AlarmEvent, PodApi, SDCReports
from witness.report.sinks.log_line import LogLine
from witness.report.sinks.notice import Notice, Sink, notice_of

__all__ = [
    "AlarmEvent",
    "EmbeddedMetrics",
    "LogLine",
    "Notice",
    "PodApi",
    "PutMetrics",
    "SDCReports",
    "Sink",
    "notice_of",
]
