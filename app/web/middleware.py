"""What happens to every request and answer, whatever route serves it?

Plain ASGI: intake passes here too, and every layer would cost it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.metrics import Metrics
from app.web.security import HEADERS

_NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS]


class Frame:
    """Answers HEAD like GET without a body, adds the security headers, measures."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, too_large: Callable[[Request], Response]
    ) -> None:
        """Wrap an application; `too_large` says in our words that a body is over its limit."""
        self._app = app
        self._metrics = metrics
        self._too_large = too_large

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            scope["method"] = "GET"
        answer = _Answer(send, head=method == "HEAD")
        try:
            await self._app(scope, receive, answer.send)
            if answer.body_refused:
                request = Request(scope, receive)
                said = await run_in_threadpool(self._too_large, request)
                answer.body_refused = False
                await said(scope, receive, answer.send_on)
        finally:
            self._metrics.request(scope, method, answer.status, time.perf_counter() - began)


class _Answer:
    def __init__(self, send: Send, *, head: bool) -> None:
        self._send = send
        self._head = head
        self.status = 500
        self.body_refused = False

    async def send(self, message: Message) -> None:
        """Pass a message on, but for the framework's own words about a body over its limit."""
        if message["type"] == "http.response.start" and message["status"] == 413:
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self.body_refused = kind.startswith("text/plain")
        if not self.body_refused:
            await self.send_on(message)

    async def send_on(self, message: Message) -> None:
        """Pass a message on, with the headers added and without the body of a HEAD."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            _add_headers(message)
        elif self._head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def _add_headers(message: Message) -> None:
    message["headers"] = [*message["headers"], *_ENCODED]
    headers = MutableHeaders(raw=message["headers"])
    headers.setdefault("Content-Security-Policy", _NO_PAGE)
    headers.setdefault("Cache-Control", "no-store")
    message["headers"] = headers.raw
