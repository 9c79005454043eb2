"""How does a test start a Kubernetes API server of its own, fill it, break it and look inside?"""

import base64
import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tests.doubles.kubernetes.access import EVERYTHING, Access, User
from tests.doubles.kubernetes.answers import Json
from tests.doubles.kubernetes.asking import Asked
from tests.doubles.kubernetes.certificate import server_context
from tests.doubles.kubernetes.faults import Fault, Faults
from tests.doubles.kubernetes.resources import RESOURCES, Resource
from tests.doubles.kubernetes.server import ApiServer
from tests.doubles.kubernetes.serving import Network
from tests.doubles.kubernetes.store import Store

ADMIN_TOKEN = "admin-token"
_ASKING_ONLY = ("selfsubjectaccessreviews", "tokenreviews")


@dataclass
class Call:
    """One request as it came in; `status` is None while, or if, it has no answer."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    body: Any
    at: datetime
    fault: Fault | None
    status: int | None = None

    @property
    def dry_run(self) -> bool:
        return "dryRun" in self.query

    @property
    def changing(self) -> bool:
        """Tell whether the call asks for a change (a review asks for none)."""
        return self.method != "GET" and not self.path.endswith(_ASKING_ONLY)


class KubernetesDouble:
    """A Kubernetes API server on the loopback, as a context manager.

    `case` is a document `{"nodes": [], "pods": [], "fail": {}}` or the file that holds it. With
    `tls` it has a certificate of its own, which kubectl needs before it sends a token.
    """

    def __init__(
        self,
        case: Mapping[str, Any] | Path | None = None,
        *,
        tls: bool = False,
        users: Mapping[str, User] | None = None,
        first_version: int = 1,
        port: int = 0,
    ) -> None:
        self.store = Store(first_version)
        known = {ADMIN_TOKEN: User("admin", EVERYTHING, ("system:masters",))}
        self.access = Access({**known, **(users or {})})
        self.faults = Faults()
        self.requests: list[Call] = []
        self._folder = tempfile.TemporaryDirectory(prefix="kubernetes-double-")
        context, self.certificate = server_context(Path(self._folder.name)) if tls else (None, "")
        api = ApiServer(self.store, self.access)
        self._network = Network(api.answer, self.faults.pick, self._record, context, port)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._network.server_address[1]}"
        self.load(case or {})

    def load(self, case: Mapping[str, Any] | Path) -> None:
        """Add the nodes, pods and faults of a case."""
        document = json.loads(case.read_text()) if isinstance(case, Path) else case
        for node in document.get("nodes") or ():
            self.put("nodes", node)
        for pod in document.get("pods") or ():
            self.put("pods", pod)
        for call, answer in (document.get("fail") or {}).items():
            self.set_fault(call, status=answer["status"], body=answer.get("body"))

    def put(self, plural: str, obj: Mapping[str, Any]) -> Json:
        """Store an object as it is, past all checks; give it with its uid and version."""
        copied: Json = json.loads(json.dumps(obj))
        if _resource(plural).namespaced:
            copied["metadata"].setdefault("namespace", "default")
        return self.store.create(_resource(plural), copied)

    def __enter__(self) -> Self:
        serve = self._network.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving and let go of calls that hang."""
        self._network.stopping.set()
        self._network.shutdown()
        self._network.server_close()
        self._folder.cleanup()

    def _record(self, asked: Asked, fault: Fault | None) -> Callable[[int | None], None]:
        """Note a request; give the function that notes its answer."""
        try:
            body = json.loads(asked.body) if asked.body else None
        except ValueError:
            body = asked.body
        when = datetime.now(UTC)
        call = Call(asked.method, asked.path, asked.query, asked.content_type, body, when, fault)
        self.requests.append(call)

        def done(status: int | None) -> None:
            call.status = status

        return done

    @property
    def calls(self) -> list[Call]:
        """Give every call that asks for a change, dry runs among them, in order of arrival."""
        return [call for call in self.requests if call.changing]

    def changes(self, method: str = "PATCH") -> list[Call]:
        """Give the calls of one method that were meant for real."""
        return [call for call in self.calls if call.method == method and not call.dry_run]

    def node(self, name: str) -> Json:
        """Give a node as it is stored now."""
        return self.store.get(_resource("nodes"), "", name)

    def events(self) -> list[Json]:
        """Give all Events, in the core form, the oldest first."""
        found = self.store.list(_resource("events"), "")
        return sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def change(self, name: str, edit: Callable[[Json], None]) -> Json:
        """Change a node behind everybody's back, as another client would."""
        with self.store.lock:
            node = self.node(name)
            edit(node)
            return self.store.replace(_resource("nodes"), node)

    def remove(self, name: str) -> None:
        """Remove a node."""
        self.store.delete(_resource("nodes"), "", name)

    def set_fault(self, call: str, **how: Any) -> Fault:
        """Switch a fault on for calls such as "PATCH /api/v1/nodes/a", "GET *" or "*"."""
        return self.faults.add(Fault(call, **how))

    def clear_faults(self) -> None:
        """Switch all faults off."""
        self.faults.clear()

    def kubeconfig(
        self, path: Path, context: str = "double", token: str | None = ADMIN_TOKEN
    ) -> Path:
        """Write a kubeconfig that points here, and give its path."""
        cluster: Json = {"server": self.url}
        if self.certificate:
            data = base64.b64encode(self.certificate.encode()).decode()
            cluster["certificate-authority-data"] = data
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": "double", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token} if token else {}}],
            "contexts": [{"name": context, "context": {"cluster": "double", "user": "user"}}],
        }
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        return path


def _resource(plural: str) -> Resource:
    return next(one for one in RESOURCES if one.plural == plural)
