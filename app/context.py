"""What does every request get to work with?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.requests import HTTPConnection

from app.cluster.ports import ClusterPort
from app.cluster.provider.ports import ProviderPort
from app.config import Settings
from app.sources.logs import NodeLogs
from app.sources.ports import Sources
from app.store.store import Store


def utc_now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """Settings, store, the outside world by cluster name, and the clock: handed down."""

    settings: Settings
    store: Store
    clusters: Mapping[str, ClusterPort] = field(default_factory=dict)
    now: Callable[[], datetime] = utc_now
    sources: Sources = field(default_factory=dict)
    node_logs: NodeLogs = field(default_factory=dict)
    providers: Mapping[str, ProviderPort] = field(default_factory=dict)


def context_of(request: HTTPConnection) -> Context:
    """Give the context of the application that serves this request."""
    context: Context = request.app.state.context
    return context
