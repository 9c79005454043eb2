"""A real Prometheus, and servers that answer as sources do when they are in trouble."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.doubles.kubernetes.certificate import server_context
from tests.prometheus import Prometheus


@pytest.fixture
def prometheus(tmp_path: Path, free_port: int) -> Iterator[Prometheus]:
    """Start an empty Prometheus."""
    with Prometheus(tmp_path, free_port) as running:
        yield running


Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Troubled:
    """A server that gives the next prepared answer to each form, then the last one for ever."""

    url: str = ""
    replies: list[Reply | Callable[[dict[str, str]], Reply]] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    ca_file: str = ""

    def next(self, form: dict[str, str]) -> Reply:
        """Give the answer to this form."""
        one = self.replies[0] if len(self.replies) == 1 else self.replies.pop(0)
        return one(form) if callable(one) else one


def matrix(*series: tuple[dict[str, str], list[list[Any]]], **more: Any) -> Reply:
    """Write a successful answer."""
    result = [{"metric": labels, "values": values} for labels, values in series]
    data = {"resultType": "matrix", "result": result}
    body = json.dumps({"status": "success", "data": data, **more}).encode()
    return 200, {"Content-Type": "application/json"}, body


def failure(status: int, error: str, kind: str = "bad_data", **headers: str) -> Reply:
    """Write a failed answer."""
    body = json.dumps({"status": "error", "errorType": kind, "error": error}).encode()
    return status, headers, body


@pytest.fixture
def troubled() -> Iterator[Troubled]:
    """Start a server whose answers a test prepares."""
    state = Troubled()
    with serving(state):
        yield state


@pytest.fixture
def troubled_tls(tmp_path: Path) -> Iterator[Troubled]:
    """Start the same behind TLS, with a certificate for 127.0.0.1 that `ca_file` trusts."""
    context, certificate = server_context(tmp_path)
    (tmp_path / "ca.pem").write_text(certificate)
    state = Troubled(ca_file=str(tmp_path / "ca.pem"))
    with serving(state, context):
        yield state


@contextmanager
def serving(state: Troubled, context: ssl.SSLContext | None = None) -> Iterator[None]:
    """Serve its answers at `state.url` until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
            state.forms.append(form)
            state.headers.append(dict(self.headers.items()))
            state.bodies.append(body)
            status, headers, answer = state.next(form)
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Write nothing: clients hang up on answers that are too large for them."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    state.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
