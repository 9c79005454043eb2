"""In which order are locks taken, so that two processes never wait for each other?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.context import Context
from app.store import audit
from app.store.connection import Connection

T = TypeVar("T")


def write(context: Context, work: Callable[[Connection], T]) -> T:
    """Write something that ends in an audit entry: the chain's lock comes before any row.

    Several pieces of work share a commit.  Were the chain locked by the first of them and a row by
    the second, two processes could each hold what the other one waits for.
    """

    def in_order(connection: Connection) -> T:
        audit.hold_chain(connection)
        return work(connection)

    return context.store.write(in_order)
