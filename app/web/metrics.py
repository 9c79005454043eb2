"""What does the service count about itself?"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.types import Scope

from app.store.store import Store

# From a cached fragment to a rank map of 100,000 ranks.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one application; intake calls `document`."""

    def __init__(self) -> None:
        """Make an own registry, so that two applications in one process do not mix."""
        self.registry = CollectorRegistry()
        self._requests = Histogram(
            "witness_request_seconds",
            "Time from the first byte of a request to the last of its answer",
            ("route", "method", "status"),
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self._documents = Counter(
            "witness_documents",
            "Documents that came in, by kind and outcome",
            ("kind", "outcome"),
            registry=self.registry,
        )
        self._queue = Gauge(
            "witness_queue_documents",
            "Documents that wait for the database",
            registry=self.registry,
        )
        self._commits = Gauge(
            "witness_commits", "Transactions committed since the start", registry=self.registry
        )
        self._written = Gauge(
            "witness_documents_written",
            "Documents written since the start",
            registry=self.registry,
        )
        self._proposals = Gauge(
            "witness_proposals", "Proposals by status", ("status",), registry=self.registry
        )

    def request(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count one answered request by its route, never by its address."""
        route = getattr(scope.get("route"), "path", None) or "none"
        self._requests.labels(route, method, str(status)).observe(seconds)

    def document(self, kind: str, outcome: str, number: int = 1) -> None:
        """Count documents; outcome is new, duplicate or refused."""
        self._documents.labels(kind, outcome).inc(number)

    def text(self, store: Store, proposals: dict[str, int]) -> bytes:
        """Write everything in the text format of Prometheus."""
        self._queue.set(store.writer.waiting)
        self._commits.set(store.writer.commits)
        self._written.set(store.writer.documents)
        self._proposals.clear()
        for status, number in proposals.items():
            self._proposals.labels(status).set(number)
        return generate_latest(self.registry)


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
