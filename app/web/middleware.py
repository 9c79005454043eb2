"""What happens to every request and answer, whatever route serves it?

Plain ASGI: intake passes here too, and every layer would cost it.
"""

from __future__ import annotations

import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.metrics import Metrics
from app.web.security import HEADERS

_NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS]


class Frame:
    """Answers HEAD like GET without a body, adds the security headers, measures."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Wrap an application."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"]
        head = method == "HEAD"
        if head:
            scope["method"] = "GET"
        status = 500

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message)
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            self._metrics.request(scope, method, status, time.perf_counter() - began)


def _add_headers(message: Message) -> None:
    message["headers"] = [*message["headers"], *_ENCODED]
    headers = MutableHeaders(raw=message["headers"])
    headers.setdefault("Content-Security-Policy", _NO_PAGE)
    headers.setdefault("Cache-Control", "no-store")
    message["headers"] = headers.raw
