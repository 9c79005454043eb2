"""How does a test start a SageMaker of its own, fill it, break it and let time pass?"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from tests.doubles.sagemaker import model
from tests.doubles.sagemaker.answering import Answers, ServiceError
from tests.doubles.sagemaker.clock import Clock
from tests.doubles.sagemaker.faults import Fault, Faults
from tests.doubles.sagemaker.health_checks import HealthChecks
from tests.doubles.sagemaker.machines import Machines
from tests.doubles.sagemaker.server import Network, Reply, failure
from tests.doubles.sagemaker.state import Cluster, Group, Node, Timings

CHANGING = ("BatchReplaceClusterNodes", "BatchRebootClusterNodes", "StartClusterHealthCheck")


@dataclass
class Call:
    """One request as it came in; `status` is None while, or if, it has no answer."""

    operation: str
    asked: Any
    fault: Fault | None
    key: str = ""  # the access key that signed it
    at: float = field(default_factory=time.time)  # by the real clock
    status: int | None = None


class SagemakerDouble:
    """SageMaker with one HyperPod cluster on the loopback, as a context manager.

    `ids` are the machines of the group `gpu` at the start. Time stands until it is advanced.
    """

    def __init__(
        self,
        ids: Iterable[str] = (),
        *,
        start: datetime | None = None,
        timings: Timings | None = None,
        **cluster: Any,
    ) -> None:
        self.lock = threading.RLock()
        self.clock, self.cluster = Clock(start), Cluster(**cluster)
        self.machines = Machines(self.cluster, self.clock, timings or Timings())
        self.checks = HealthChecks(self.machines)
        self.faults = Faults()
        self.requests: list[Call] = []
        self.wrong_answers: list[str] = []
        self._canned: dict[str, list[tuple[int, Any]]] = {}
        self._before: list[Callable[[], None]] = []
        self._answers = Answers(self.machines, self.checks)
        self._network = Network(self._handle, self.faults.pick, self._record)
        self.url = f"http://127.0.0.1:{self._network.server_address[1]}"
        self.add_group("gpu")
        for one in ids:
            self.add(one)

    def __enter__(self) -> Self:
        serve = self._network.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        assert self.wrong_answers == [], "the double itself broke the service's model"

    def close(self) -> None:
        """Stop serving and let go of calls that hang."""
        self._network.stopping.set()
        self._network.shutdown()
        self._network.server_close()

    # --- what a test sets up ---------------------------------------------------------------------

    def entry(self, **more: Any) -> dict[str, Any]:
        """Give an entry of WITNESS_PROVIDERS that leads here."""
        cluster = self.cluster
        return {
            "kind": "hyperpod",
            "cluster": cluster.name,
            "region": cluster.region,
            "endpoint_url": self.url,
            **more,
        }

    def add_group(self, name: str, **more: Any) -> Group:
        """Add an instance group."""
        group = self.cluster.groups[name] = Group(name, **more)
        return group

    def add(self, instance_id: str, group: str = "gpu", **more: Any) -> Node:
        """Add a machine that runs."""
        number = len(self.cluster.nodes) + 1
        node = Node(
            instance_id,
            group,
            ip=f"10.1.{number // 250}.{number % 250 + 1}",
            launched=self.clock.now() - timedelta(days=30),
            logical_id=f"node-{number:x}a" if self.cluster.continuous else None,
            **more,
        )
        self.cluster.nodes[instance_id] = node
        self.cluster.groups[group].target += 1
        return node

    def node(self, instance_id: str) -> Node:
        """Give a machine."""
        return self.cluster.nodes[instance_id]

    def set_fault(self, fault: Fault) -> Fault:
        """Switch a fault on."""
        return self.faults.add(fault)

    def answer_with(self, operation: str, *replies: Mapping[str, Any]) -> None:
        """Answer the next calls of an operation with these, `{"status": …, "body": …}` each."""
        queue = self._canned.setdefault(operation, [])
        queue.extend((int(reply["status"]), reply["body"]) for reply in replies)

    def before_time_passes(self, look: Callable[[], None]) -> None:
        """Let something be looked at whenever time begins to pass."""
        self._before.append(look)

    # --- what happens ----------------------------------------------------------------------------

    def advance(self, **by: float) -> None:
        """Let time pass, such as `minutes=20`."""
        with self.lock:
            for look in self._before:
                look()
            self.clock.advance(timedelta(**by))

    def platform_replaces(self, instance_id: str) -> None:
        """Let the platform begin to replace a machine by itself."""
        with self.lock:
            self.machines.replace(self.node(instance_id), "platform")

    def pods_wait(self, old: Node) -> None:
        """Let pods wait, so that the autoscaler makes a machine in the place of another one."""
        with self.lock:
            self.machines.bring_back(old)

    # --- what a test looks at --------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """Give every call that asks for a change, in order of arrival."""
        return [call for call in self.requests if call.operation in CHANGING]

    def calls_of(self, operation: str) -> list[Call]:
        """Give the calls of one operation."""
        return [call for call in self.requests if call.operation == operation]

    # --- the wire --------------------------------------------------------------------------------

    def _record(
        self, operation: str, headers: dict[str, str], body: bytes, fault: Fault | None
    ) -> Callable[[int | None], None]:
        try:
            asked = json.loads(body)
        except ValueError:
            asked = body
        key = headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]
        call = Call(operation, asked, fault, key)
        self.requests.append(call)

        def done(status: int | None) -> None:
            call.status = status

        return done

    def _handle(self, headers: dict[str, str], body: bytes) -> Reply:
        try:
            with self.lock:
                return self._answer(headers, body)
        except ServiceError as error:
            return failure(error.code, error.message, error.status)

    def _answer(self, headers: dict[str, str], body: bytes) -> Reply:
        operation, asked = self._read(headers, body)
        canned = self._canned.get(operation)
        status, answer = canned.pop(0) if canned else (200, None)
        if answer is None:
            answer = self._answers.answer(operation, asked)
        if status == 200:
            self.wrong_answers += model.wrong_answer(operation, answer)
        return Reply(status, json.dumps(answer))

    def _read(self, headers: dict[str, str], body: bytes) -> tuple[str, dict[str, Any]]:
        """Read a request as the front door does; raise `ServiceError`."""
        target = headers.get("x-amz-target", "")
        if not headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential="):
            raise ServiceError("MissingAuthenticationTokenException", "Missing token", 403)
        if headers.get("content-type") != "application/x-amz-json-1.1":
            raise ServiceError("UnknownOperationException", "no JSON 1.1")
        operation = target.removeprefix(model.TARGET)
        if not target.startswith(model.TARGET) or operation not in model.operations():
            raise ServiceError("UnknownOperationException", f"no operation {target!r}")
        try:
            asked = json.loads(body)
        except ValueError as error:
            raise ServiceError("SerializationException", "the body is no JSON") from error
        wrong = model.wrong_request(operation, asked)
        if wrong:
            count = f"{len(wrong)} validation error{'s'[: len(wrong) > 1]} detected"
            raise ServiceError("ValidationException", f"{count}: {'; '.join(wrong)}")
        return operation, asked
