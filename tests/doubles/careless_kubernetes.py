"""How does a server behave that knows little of Kubernetes: no dry run, no versions, no managers?

It merges whatever dictionary it gets, also for a dry run, and checks one thing only: the values
of labels. A cordon that is right here does not lean on what a server may leave out.
"""

import copy
import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")


def _merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value


class CarelessKubernetes:
    """A context manager with the address, the nodes and the changing calls."""

    def __init__(self, case: Path) -> None:
        nodes = json.loads(case.read_text())["nodes"]
        self.nodes: dict[str, dict[str, Any]] = {one["metadata"]["name"]: one for one in nodes}
        self.calls: list[tuple[str, str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing."""

            def _any(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(size)
                path = self.path.split("?")[0]
                status, body = outer.answer(self.command, path, json.loads(text or b"null"))
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = _any  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        """Answer one request."""
        if method != "GET":
            self.calls.append((method, path, body))
        if method == "POST":
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
        node = self.nodes.get(path.removeprefix("/api/v1/nodes/"))
        if node is None:
            return 404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
        if method == "PATCH" and isinstance(body, dict):
            labels = body.get("metadata", {}).get("labels") or {}
            if any(value and not _LABEL_VALUE.fullmatch(value) for value in labels.values()):
                words = "metadata.labels: Invalid value"
                return 422, {"kind": "Status", "reason": "Invalid", "message": words, "code": 422}
            _merge(node, copy.deepcopy(body))
        return 200, {"kind": "Node", "apiVersion": "v1", **node}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
