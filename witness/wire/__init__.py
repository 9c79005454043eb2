"""What does a training job say on the wire, and who does it say it is?

Documents are plain dicts of JSON values; `to_line` writes one as a line for `/api/v1/events`.
"""

from witness.wire.documents import (
    alarm,
    checkpoints,
    content_key,
    elastic_event,
    passes,
    rank_map,
    replay,
)
from witness.wire.envelope import Envelope, now_text
from witness.wire.environment import envelope_from_environment
from witness.wire.strict import plain, to_json, to_line

__all__ = [
    "Envelope",
    "alarm",
    "checkpoints",
    "content_key",
    "elastic_event",
    "envelope_from_environment",
    "now_text",
    "passes",
    "plain",
    "rank_map",
    "replay",
    "to_json",
    "to_line",
]
