"""How does a server answer as EKS does when it is asked to describe an add-on?"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app.sources.discovery import ADD_ON

PATH = f"/clusters/fleet/addons/{ADD_ON}"


@dataclass
class Eks:
    """What it says from now on, and what it was asked."""

    url: str = ""
    status: int = 200
    error: str = "ResourceNotFoundException"
    body: bytes = b"{}"
    asked: list[str] = field(default_factory=list)

    def settings(self, values: str | dict[str, Any]) -> None:
        """Let the add-on have these settings."""
        text = values if isinstance(values, str) else json.dumps(values)
        self.says({"addon": {"addonName": ADD_ON, "configurationValues": text}})

    def says(self, document: Any) -> None:
        """Let it answer with this document."""
        self.status, self.body = 200, json.dumps(document).encode()

    def fails(self, status: int, error: str, message: str) -> None:
        """Let it answer with an error."""
        self.status, self.error = status, error
        self.body = json.dumps({"message": message}).encode()


@contextmanager
def serving() -> Iterator[Eks]:
    """Serve until the block ends."""
    state = Eks()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

        def do_GET(self) -> None:
            state.asked.append(self.path)
            self.send_response(state.status)
            if state.status != 200:
                self.send_header("x-amzn-ErrorType", state.error)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(state.body)))
            self.end_headers()
            self.wfile.write(state.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
