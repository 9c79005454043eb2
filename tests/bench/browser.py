"""How does the bench see pages as a signed-in person sees them?"""

from __future__ import annotations

import re
import time
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected
from urllib.parse import urlencode

from tests.bench.server import Server


class Browser:
    """One connection that stays open, with the cookies of a session."""

    def __init__(self, server: Server) -> None:
        """Sign in with the link that the server printed."""
        self._port = server.port
        self._cookies: dict[str, str] = {}
        self._line = HTTPConnection("127.0.0.1", server.port, timeout=120)
        text = self.get(server.link)[1].decode()
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', text)
        assert found is not None, "the sign-in page has no form"
        form = urlencode({"csrf": found[1]}).encode()
        status = self._send("POST", server.link, form)[0]
        assert status == 303, f"signing in gave {status}"

    def get(self, path: str) -> tuple[int, bytes, float]:
        """Open a page; give status, body as it came over the wire, and seconds."""
        return self._send("GET", path, None)

    @property
    def cookies(self) -> dict[str, str]:
        """Give the cookies of the session, for another browser to go on with."""
        return dict(self._cookies)

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def weight(self, path: str) -> int:
        """Count the bytes of a page as a browser asks for it, compressed, without its assets."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=120)) as line:
            line.request("GET", path, headers={**self._headers(), "Accept-Encoding": "gzip"})
            return len(line.getresponse().read())

    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        origin = f"http://127.0.0.1:{self._port}"
        return {"Cookie": cookies, "Origin": origin} if cookies else {"Origin": origin}

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        began = time.perf_counter()
        try:
            self._line.request(method, path, body, headers)
            answer = self._line.getresponse()
        except (ConnectionResetError, RemoteDisconnected):
            # The server hung up an idle line just then, as it may: a browser connects anew.
            if method != "GET":
                raise
            self._line.close()
            self._line.request(method, path, body, headers)
            answer = self._line.getresponse()
        text = answer.read()
        took = time.perf_counter() - began
        for given in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = given.split(";", 1)[0].partition("=")
            self._cookies[name] = value
        return answer.status, text, took
