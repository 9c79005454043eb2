"""How do requests come in over HTTP and answers go out, also late, torn or never?"""

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.doubles.kubernetes.answers import Answer
from tests.doubles.kubernetes.asking import Asked
from tests.doubles.kubernetes.faults import Fault
from tests.doubles.kubernetes.reading import Stream

_LINGER_OFF = struct.pack("ii", 1, 0)


class Network(ThreadingHTTPServer):
    """The listening socket; a thread for every connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        answer: Callable[[Asked], Answer | Stream],
        fault_for: Callable[[Asked], Fault | None],
        record: Callable[[Asked, Fault | None], Callable[[int | None], None]],
        tls: ssl.SSLContext | None,
        port: int,
    ) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.answer, self.fault_for, self.record = answer, fault_for, record
        self.stopping = threading.Event()
        self.torn: set[int] = set()
        if tls is not None:
            # The handshake is made in the connection's own thread, not while accepting.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def shutdown_request(self, request: Any) -> None:
        """End a connection; a torn one without the polite part, so that the peer gets a reset."""
        if id(request) in self.torn:
            self.torn.discard(id(request))
            self.close_request(request)
            return
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that went away, which is what the tests make them do."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Network

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def _any(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        headers = {key.lower(): value for key, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, self.rfile.read(size))
        fault = self.server.fault_for(asked)
        done = self.server.record(asked, fault)
        answer = self._spoil(asked, fault) if fault else self.server.answer(asked)
        done(answer.status if isinstance(answer, Answer) else None)
        if isinstance(answer, Answer):
            self._send(answer, fault.drip_s if fault else 0.0)
        elif isinstance(answer, Stream):
            self._stream(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _any  # noqa: N815

    def _spoil(self, asked: Asked, fault: Fault) -> Answer | Stream | None:
        """Do what the fault says; None: there is no answer at all."""
        early = self.server.answer(asked) if fault.apply_first else None
        if fault.delay_s:
            self.server.stopping.wait(fault.delay_s)
        if fault.status is None and not fault.hang and not fault.reset:
            return early or self.server.answer(asked)
        if fault.status is not None:
            return fault.spoilt()
        if fault.hang:
            self.server.stopping.wait()
        self._tear()
        return None

    def _tear(self) -> None:
        """Break the connection off without an answer."""
        self.close_connection = True
        self.server.torn.add(id(self.request))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)

    def _send(self, answer: Answer, drip_s: float) -> None:
        is_text = isinstance(answer.body, str)
        body = answer.body if is_text else json.dumps(answer.body)
        data = str(body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for key, value in answer.headers.items():
            self.send_header(key, value)
        self.end_headers()
        if not drip_s:
            self.wfile.write(data)
            return
        for at in range(len(data)):
            if self.server.stopping.is_set():
                break
            self.wfile.write(data[at : at + 1])
            self.wfile.flush()
            time.sleep(drip_s)

    def _stream(self, stream: Stream) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for event in stream.events:
                if self.server.stopping.is_set():
                    self.close_connection = True
                    return
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
