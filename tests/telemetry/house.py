"""How does a test serve the application with a cluster, a log service and its own clock?"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from app.actions.telemetry import collecting
from app.actions.telemetry.node_log import NodeLog, read_node_log
from app.config import Settings
from app.main import make_context
from app.sources.logs import AGENT
from app.store import ids, telemetry_kept
from app.store.telemetry_kept import Kept
from tests.actions.service import ADMIN_TOKEN, Service
from tests.doubles.cloudwatch_logs import CloudWatchLogsDouble
from tests.doubles.kubernetes import KubernetesDouble
from tests.pages_alarm import documents as d
from tests.telemetry import nodes

GROUP = "/aws/sagemaker/Clusters/alpine/4k2xq9mlunp0"
INSTANCE = d.node(13).removeprefix("hyperpod-")
STREAM = f"{AGENT}/gpu/{INSTANCE}"
HOUR = timedelta(hours=1)


@dataclass
class House:
    """A service with a cluster and a log, and a clock of its own."""

    url: str
    folder: Path
    stack: ExitStack
    now: datetime = field(default_factory=lambda: nodes.moment(20))
    cluster: KubernetesDouble | None = None
    log: CloudWatchLogsDouble | None = None

    def has_cluster(self, *known: dict[str, Any]) -> KubernetesDouble:
        """Start a cluster with these nodes."""
        self.cluster = self.stack.enter_context(KubernetesDouble({"nodes": list(known)}))
        return self.cluster

    def has_log(self) -> CloudWatchLogsDouble:
        """Start a log service with one group."""
        self.log = self.stack.enter_context(CloudWatchLogsDouble(groups={GROUP: []}))
        return self.log

    def serve(self) -> Service:
        """Serve the application with what there is."""
        clusters, logs = {}, {}
        if self.cluster is not None:
            file = self.cluster.kubeconfig(self.folder / "kubeconfig")
            clusters["alpine"] = {"kubeconfig": str(file), "context": "double"}
        if self.log is not None:
            logs["alpine"] = {
                "region": "us-west-2", "log_group": GROUP, "endpoint_url": self.log.url
            }  # fmt: skip
        settings = Settings(
            database_url=self.url, data_dir=self.folder, admin_token=ADMIN_TOKEN,
            clusters=clusters, node_logs=logs,
        )  # fmt: skip
        context = replace(make_context(settings), now=lambda: self.now)
        service = Service(context)
        self.stack.callback(service.close)
        return service

    def collect(self, service: Service, later: timedelta = timedelta(0)) -> int:
        """Collect what is due some time later."""
        self.now += later
        return collecting.collect_due(service.context, "a worker of the tests")


def in_ms(seconds: float) -> int:
    return round(nodes.moment(seconds).timestamp() * 1000)


def log_of(service: Service, alarm: str) -> NodeLog:
    with service.context.store.reading() as connection:
        return read_node_log(connection, ids.read(alarm))


def reading_of(service: Service, alarm: str) -> Kept:
    with service.context.store.reading() as connection:
        (one,) = telemetry_kept.readings_of_alarms(connection, [ids.read(alarm)])
    return one


def states(service: Service, alarm: str) -> dict[str, tuple[str, str | None]]:
    return {one.kind: (one.state, one.said) for one in nodes.questions(service, alarm)}


def post_named(service: Service, name: str | None, instance: str | None) -> str:
    """Post a job whose culprit's machine has this name and instance id."""
    placed = d.rank_map()
    for row in placed["ranks"][8:16]:
        row["node"], row["instance_id"] = name, instance
    ring = d.passes("ring", 0, 20, 3, clock="13:58:00")
    *_, last = service.post(
        {"kind": "rank_map", **placed},
        {"kind": "passes", **ring},
        {"kind": "alarm", **d.alarm(d.CULPRIT)},
    )
    return str(last["id"])
