"""Does a body whose lines never end hold the thread that reads it?"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from app.sources import transport
from app.sources.ports import Away
from tests.sources.raw import speaking
from tests.sources.test_hostile import HEAD, Send, pull

CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def endless_size(send: Send) -> None:
    """Zeros before a chunk's size: a line of 64 KiB may be so."""
    send(CHUNKED)
    while True:
        send(b"0")
        time.sleep(0.05)


def endless_trailers(send: Send) -> None:
    send(CHUNKED + b"0\r\n")
    while True:
        send(b"X: y\r\n")
        time.sleep(0.05)


@pytest.mark.parametrize("speak", [endless_size, endless_trailers])
def test_a_body_is_cut_off_in_the_middle_of_a_line(
    speak: Callable[[Send], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_wait", lambda tried, after_s: after_s or 0.01)
    began = time.monotonic()
    with speaking(speak) as url, pytest.raises(Away, match="no answer within the time limit"):
        pull(url, timeout_s=0.1)
    assert time.monotonic() - began < 10
