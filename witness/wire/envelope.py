"""Which job, and which start of it, does a document come from?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every document of one start of a job carries.

    `attempt` counts starts of the job from 1, restarts inside a living pod included; None where
    nobody counts, and then the service tells starts apart by the times of their rank maps.
    `attempt_uid` tells two starts with one number apart. Every rank of a start has to carry the
    same envelope: documents that differ are taken for different reports.
    """

    cluster: str
    namespace: str
    job: str
    attempt: int | None = None
    attempt_uid: str | None = None
    code_digest: str | None = None
    image_digest: str | None = None
    framework: Mapping[str, str] | None = None
    producer: str = "silent-witness"
    labels: Mapping[str, str] = field(default_factory=dict)

    def as_document(self, kind: str, time: str | None = None) -> dict[str, Any]:
        """Give the keys that every document begins with; `time` None means now."""
        said: dict[str, Any] = {
            "kind": kind,
            "cluster": self.cluster,
            "namespace": self.namespace,
            "job": self.job,
            "attempt": self.attempt,
            "time": time or now_text(),
            "attempt_uid": self.attempt_uid,
            "code_digest": self.code_digest,
            "image_digest": self.image_digest,
            "framework": dict(self.framework) if self.framework else None,
            "producer": self.producer,
            "labels": {str(key): str(value) for key, value in self.labels.items()} or None,
        }
        return {key: value for key, value in said.items() if value is not None}


def now_text() -> str:
    """Give the wall clock as RFC 3339 in UTC, always with six digits of microseconds."""
    # Not strftime: it imports, which fails while the interpreter ends.
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
