"""How does a server answer that breaks the rules of HTTP, or never comes to an end?"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Speak = Callable[[Callable[[bytes], None]], None]
"""Writes an answer; `send` raises `Ended` once the test is over or the other side hung up."""


class Ended(Exception):
    """Nobody listens any more."""


@contextmanager
def speaking(speak: Speak) -> Iterator[str]:
    """Serve every connection with `speak` until the block ends; gives the address."""
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def answer(connection: socket.socket) -> None:
        def send(data: bytes) -> None:
            if ended.is_set():
                raise Ended
            connection.sendall(data)

        with connection, contextlib.suppress(OSError, Ended):
            connection.recv(1 << 16)
            speak(send)

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                thread = threading.Thread(target=answer, args=(connection,))
                thread.start()
                threads.append(thread)

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            listener.join()
            for thread in threads:
                thread.join()
