"""How does the cluster learn of an alarm from inside a pod, with nothing but its service account?

Names are made from what is reported, so a thousand nodes that tell of one alarm make one object:
"it exists already" is success.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness import wire
from witness.report.sinks.notice import Notice
from witness.report.transport import request

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONTROLLER = "silent-witness.io/reporter"
REPORT_API = "silent-witness.io/v1alpha1"
NOTE_BYTES = 1024
_TRY_S, _PAUSES_S = 5.0, (0.5, 1.0, 2.0)


class KubernetesError(Exception):
    """The API server did not take an object."""


@dataclass(frozen=True, slots=True)
class PodApi:
    """The API server as this pod sees it; the token is read anew each time, since it is rotated."""

    url: str
    account: Path
    namespace: str
    pod: str
    pod_uid: str | None = None

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, account: Path = SERVICE_ACCOUNT
    ) -> PodApi | None:
        """Find the API server; None outside a pod."""
        given = os.environ if environ is None else environ
        host, port = given.get("KUBERNETES_SERVICE_HOST"), given.get("KUBERNETES_SERVICE_PORT")
        pod = given.get("POD_NAME") or given.get("HOSTNAME")
        if not host or not pod:
            return None
        shown = f"[{host}]" if ":" in host else host
        try:
            namespace = (account / "namespace").read_text("utf-8").strip()
        except OSError:
            namespace = given.get("POD_NAMESPACE", "")
        if not namespace:
            return None
        url = f"https://{shown}:{port or 443}"
        return cls(url, account, namespace, pod, given.get("POD_UID") or None)

    def create(self, path: str, document: Mapping[str, Any]) -> None:
        """Create an object, or find it there; raises KubernetesError, OSError."""
        body = json.dumps(wire.plain(document)).encode("ascii")
        problem = ""
        for pause in (*_PAUSES_S, None):
            try:
                status, said = self._post(path, body)
            except (OSError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if status in (200, 201, 202, 409):
                    return
                problem = f"{status} {said}"
                if status < 500 and status != 429:
                    break
            if pause is not None:
                time.sleep(pause)
        raise KubernetesError(f"POST {path}: {problem}")

    def _post(self, path: str, body: bytes) -> tuple[int, str]:
        token = (self.account / "token").read_text("utf-8").strip()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        context = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
        answer = request("POST", self.url + path, headers, body, timeout_s=_TRY_S, context=context)
        try:
            said = str(json.loads(answer.body).get("message", ""))[:300]
        except (ValueError, AttributeError):
            said = ""
        return answer.status, said


class AlarmEvent:
    """Makes one Warning Event about this pod; needs `create` on events of events.k8s.io."""

    def __init__(self, api: PodApi) -> None:
        self._api = api

    def tell(self, notice: Notice) -> None:
        """Create the Event."""
        namespace = self._api.namespace
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self._api.create(path, event(notice, self._api))


def event(notice: Notice, api: PodApi) -> dict[str, Any]:
    """Give the Event in the form of events.k8s.io/v1."""
    regarding = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": api.namespace,
        "name": api.pod,
        "uid": api.pod_uid,
    }
    note = (
        f"Training check {notice.check!r} raised an alarm at step {notice.step} of job "
        f"{notice.envelope.job}: {_named(notice)}."
    )
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"silent-witness-{notice.key[:20]}", "namespace": api.namespace},
        # A server takes six digits of microseconds only, zeros as well.
        "eventTime": notice.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": api.pod[:128],
        "action": "TrainingCheck",
        "reason": "SDCAlarm",
        "type": "Warning",
        "regarding": {key: value for key, value in regarding.items() if value is not None},
        "note": note.encode()[:NOTE_BYTES].decode("utf-8", "ignore"),
    }


class SDCReports:
    """Makes one `SDCReport` a named rank, or one without a rank where nobody is named.

    The cluster needs the resource's definition (`docs/reporter.md`) and the pod `create` on it.
    """

    def __init__(self, api: PodApi, group_version: str = REPORT_API) -> None:
        self._api, self._group_version = api, group_version

    def tell(self, notice: Notice) -> None:
        """Create the resources."""
        path = f"/apis/{self._group_version}/namespaces/{self._api.namespace}/sdcreports"
        for rank in notice.named or (None,):
            self._api.create(path, report(notice, rank, self._group_version))


def report(notice: Notice, rank: int | None, group_version: str = REPORT_API) -> dict[str, Any]:
    """Give the resource for one rank."""
    spec = {
        "rank": rank,
        "job": notice.envelope.job,
        "step": notice.step,
        "check": notice.check,
        "cluster": notice.envelope.cluster,
        "namespace": notice.envelope.namespace,
        "attempt": notice.envelope.attempt,
        "time": notice.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    ending = "" if rank is None else f"-r{rank}"
    return {
        "apiVersion": group_version,
        "kind": "SDCReport",
        "metadata": {"name": f"sdc-{notice.key[:20]}{ending}"},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def _named(notice: Notice) -> str:
    if not notice.named:
        return "no rank is named"
    shown = ", ".join(str(rank) for rank in notice.named[:20])
    more = len(notice.named) - 20
    return f"rank {shown}" + (f" and {more} more" if more > 0 else "") + " named"
