"""Which machines of this job is it asked to audit more closely, as far as the service says so?"""

from __future__ import annotations

import json
import logging
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from witness.report.transport import Answer, request
from witness.rules.identity import gpu_uuid, instance_id, node_name
from witness.wire import Envelope

log = logging.getLogger("witness.report")

TIMEOUT_S = 3.0
# What a wrong answer could ask for must not become the price of a job.
MOST_PASSES = 1_000
LONGEST_INTERVAL = 1_000_000


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """One machine to be audited closely: every so many steps, until so many audits passed."""

    id: str
    node: str | None
    instance_id: str | None
    gpu_uuid: str | None
    audit_every: int
    passes: int

    def concerns(self, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Tell whether a rank map uses the machine, or the GPU wherever it is."""
        return any(self._is(row) for row in rows)

    def _is(self, row: Mapping[str, Any]) -> bool:
        wanted = gpu_uuid(self.gpu_uuid).canonical
        if wanted is not None and gpu_uuid(_text(row, "gpu_uuid")).canonical == wanted:
            return True
        node = node_name(_text(row, "node"))
        instance = instance_id(node, _text(row, "instance_id"))
        if self.instance_id is not None and instance is not None:
            return self.instance_id == instance  # a name can pass to another machine
        return self.node is not None and self.node == node


def ask_audit_requests(
    url: str | None,
    token: str | Callable[[], str | None] | None,
    envelope: Envelope,
    timeout_s: float = TIMEOUT_S,
    ca_file: str | None = None,
) -> tuple[AuditRequest, ...]:
    """Ask once what the job is asked to audit; never raises, and answers within `timeout_s`.

    Nothing where the service is away: a job is audited as its schedule says then. Call it on one
    rank and broadcast what it gives.
    """
    if not url:
        return ()
    said: list[tuple[AuditRequest, ...]] = []
    problem = [f"no answer within {timeout_s:g} s"]

    def asking() -> None:
        try:
            read = token() if callable(token) else token
            said.append(_ask(requests_url(url, envelope), read, ca_file, timeout_s))
        except Exception as error:
            problem[0] = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=asking, name="witness-audits", daemon=True)
    try:
        thread.start()
        thread.join(max(timeout_s, 0.0))
    except RuntimeError as error:
        problem[0] = str(error)
    if not said:
        log.warning("what %s should audit closely is not known: %s", envelope.job, problem[0])
        return ()
    return said[0]


def requests_url(url: str, envelope: Envelope) -> str:
    """Give the address at which to ask."""
    parts = urlsplit(url)
    names = {"cluster": envelope.cluster, "namespace": envelope.namespace, "job": envelope.job}
    path = f"{parts.path.rstrip('/')}/api/v1/audit-requests"
    return f"{parts.scheme}://{parts.netloc}{path}?{urlencode(names)}"


def _ask(
    url: str, token: str | None, ca_file: str | None, timeout_s: float
) -> tuple[AuditRequest, ...]:
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    https = url.startswith("https:")
    context = ssl.create_default_context(cafile=ca_file) if https else None
    answer = request("GET", url, headers, timeout_s=timeout_s, context=context)
    return read_requests(answer)


def read_requests(answer: Answer) -> tuple[AuditRequest, ...]:
    """Read an answer; raise ValueError where it is not the service's, skip what makes no sense."""
    if answer.status != 200:
        raise ValueError(f"the service answered {answer.status}")
    said = json.loads(answer.body)
    listed = said.get("requests") if isinstance(said, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the answer is not one of this service")  # noqa: TRY004 -- see above
    read = (_request(one) for one in listed if isinstance(one, dict))
    return tuple(one for one in read if one is not None)


def _request(one: Mapping[str, Any]) -> AuditRequest | None:
    name, every, passes = one.get("id"), one.get("audit_every"), one.get("passes")
    if not isinstance(name, str) or type(every) is not int or type(passes) is not int:
        return None
    if not (0 < every <= LONGEST_INTERVAL and passes > 0):
        return None
    return AuditRequest(
        name,
        _text(one, "node"),
        _text(one, "instance_id"),
        _text(one, "gpu_uuid"),
        every,
        min(passes, MOST_PASSES),
    )


def _text(one: Mapping[str, Any], key: str) -> str | None:
    value = one.get(key)
    return value if isinstance(value, str) else None
