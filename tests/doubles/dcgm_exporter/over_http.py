"""How is a node's exporter reached over HTTP, and its text read back without a scrape?"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.doubles.dcgm_exporter.node import Node

_LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')

Written = list[tuple[dict[str, str], list[tuple[float, float]]]]
"""Series as `Prometheus.write` takes them."""


@contextmanager
def serving(node: Node, clock: Callable[[], float] = time.time) -> Iterator[str]:
    """Serve `/metrics` until the block ends; gives host and port as a scrape target."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

        def do_GET(self) -> None:
            with lock:
                page = node.page(clock())
            body = (page or "").encode()
            self.send_response(503 if page is None else 200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def read_back(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Read the exporter's text: for each sample its line's head, labels with `__name__`, value."""
    for line in page.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None:
            labels = dict(_LABEL.findall(found[2]))
            yield line.rsplit(" ", 1)[0], {"__name__": found[1], **labels}, float(found[3])


def history(node: Node, times: Sequence[float]) -> Written:
    """Give what scrapes at these times would have stored, much faster than time passes."""
    found: dict[str, tuple[dict[str, str], list[tuple[float, float]]]] = {}
    for at in times:
        for line in (node.page(at) or "").splitlines():
            if line.startswith("#"):
                continue
            head, _, value = line.rpartition(" ")
            if head not in found:
                ((_, labels, _),) = read_back(line)
                found[head] = (labels, [])
            found[head][1].append((at, float(value)))
    return list(found.values())
