"""How does an agent that only reads logs see an alarm?"""

from __future__ import annotations

import sys
from typing import TextIO

from witness import wire
from witness.report.sinks.notice import Notice

MARK = "SDC_ALARM"


class LogLine:
    """Writes one line `SDC_ALARM {json}` to standard output, or to another stream.

    Launchers put a prefix before it, so a rule that matches from the line's start has to begin with
    `.*`. Every node writes one; `"here":true` stands on the nodes that the alarm names.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def tell(self, notice: Notice) -> None:
        """Write the line at once and whole."""
        said = {
            "check": notice.check,
            "step": notice.step,
            "named": notice.named,
            "here": notice.here,
            "cluster": notice.envelope.cluster,
            "namespace": notice.envelope.namespace,
            "job": notice.envelope.job,
            "attempt": notice.envelope.attempt,
            "time": notice.at,
            **notice.metrics,
        }
        stream = self._stream or sys.stdout
        stream.write(f"{MARK} {wire.to_json(said)}\n")
        stream.flush()
