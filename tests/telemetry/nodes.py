"""What do a node's agent and a node itself say in the tests, and how is it kept by hand?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from app.actions.telemetry import pulling
from app.store import ids, node_evidence, node_records
from app.store.node_evidence import Evidence
from app.store.node_records import Raw
from tests.actions.service import Service
from tests.pages_alarm import documents as d

ALARM = datetime.fromisoformat(d.alarm({})["time"])
OFF_THE_BUS = "NVRM: Xid (PCI:0000:58:00): 79, GPU has fallen off the bus."
"""Of rank 13, the culprit: it has index 5, and its exporter says 00000000:58:00.0."""
LINK = "NVRM: Xid (PCI:0000:55:00): 74, pid=1, NVLink: fatal error detected on link 6"
PREFIX = "sagemaker.amazonaws.com/"


def moment(seconds: float = 0.0) -> datetime:
    """Give a time by the seconds since the alarm."""
    return ALARM + timedelta(seconds=seconds)


def zulu(seconds: float = 0.0) -> str:
    """Write a time as the agent and Kubernetes do."""
    return f"{moment(seconds):%Y-%m-%dT%H:%M:%SZ}"


def agent_line(
    message: str = OFF_THE_BUS,
    at: float = -30.0,
    reason: str = "XidHardwareFailure",
    inner: float | None = None,
    key: str = "details",
    now: str = "True",
) -> str:
    """Write a line of the health agent; times are seconds since the alarm."""
    text = f"Node condition NvidiaErrorReboot is now: {now}, reason: {reason}"
    details = {
        "severity": "warn",
        "timestamp": zulu(at if inner is None else inner),
        "reason": reason,
        "message": f'{text}, message: "{message}"',
    }
    line = {"level": "info", "ts": zulu(at), "msg": "NPD caught event: %v", key: details}
    return json.dumps({**line, "HealthMonitoringAgentDetectionEvent": "HealthEvent"})


def node(
    rank: int = 13,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    conditions: Sequence[dict[str, Any]] = (),
    **metadata: Any,
) -> dict[str, Any]:
    """Describe the Kubernetes node of a rank, as HyperPod makes it."""
    name = d.node(rank)
    about = {
        "name": name,
        "uid": f"00000000-0000-4000-8000-{rank // 8:012x}",
        "creationTimestamp": "2026-10-01T00:00:00Z",
        "labels": {
            f"{PREFIX}instance-group-name": "gpu",
            f"{PREFIX}node-health-status": "Schedulable",
            "nvidia.com/gpu.present": "true",
            **(labels or {}),
        },
        "annotations": annotations or {},
        **metadata,
    }
    instance = name.removeprefix("hyperpod-")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-10-01T00:00:00Z"}
    return {
        "metadata": about,
        "spec": {"providerID": f"aws:///usw2-az1/sagemaker/cluster/hyperpod-4k2xq9-{instance}"},
        "status": {
            "conditions": [ready, *conditions],
            "allocatable": {"nvidia.com/gpu": "8"},
            "images": [{"names": ["registry.example/train:1"], "sizeBytes": 393898239}],
        },
    }


def fault(kind: str = "NvidiaErrorReboot", at: float = -20.0, **more: str) -> dict[str, str]:
    """Write a condition that names a fault."""
    named = {"type": kind, "status": "True", "reason": "XidHardwareFailure"}
    return {**named, "lastTransitionTime": zulu(at), "message": "", **more}


def want(service: Service, alarm_id: str) -> list[Evidence]:
    """Plan an alarm; give the questions about its machines."""
    pulling.plan_wanted(service.context)
    return questions(service, alarm_id)


def questions(service: Service, alarm_id: str) -> list[Evidence]:
    """Give the questions about an alarm's machines as they stand."""
    with service.context.store.reading() as connection:
        return node_evidence.of_alarm(connection, ids.read(alarm_id))


def keep(service: Service, evidence: Evidence, *found: Raw) -> int:
    """Keep records for a question; give how many are new."""
    packed = node_records.pack(evidence, found)
    return service.context.store.write(lambda c: node_records.write(c, packed, moment(900)))


def line(text: str, at: float = -30.0, received: float | None = None, event: str = "") -> Raw:
    """Give one line as the log service has it."""
    taken = moment(at + 2 if received is None else received)
    return Raw(text, moment(at), taken, "SagemakerHealthMonitoringAgent/gpu/i-1", event or None)
