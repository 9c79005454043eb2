"""What do the other layers hold when they hold "the store"?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine

from app.store.database import StoreUnavailable, connect, is_unavailable
from app.store.writer import Apply, Writer

T = TypeVar("T")


class Store:
    """Reading connections and the one writer.

    Read:  `with store.reading() as connection: ...`
    Write: `store.write(lambda connection: ...)`, which returns after the commit.
    """

    def __init__(self, engine: Engine, writer: Writer) -> None:
        self.engine = engine
        self.writer = writer

    @classmethod
    def open(
        cls,
        url: str,
        apply: Apply,
        queue_limit: int = 20_000,
    ) -> Store:
        """Connect to the database and start the writer; `apply` writes documents."""
        engine = connect(url)
        return cls(engine, Writer(engine, apply, queue_limit))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection for reading; raise StoreUnavailable while the database is away."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except Exception as error:
            if is_unavailable(error) and not isinstance(error, StoreUnavailable):
                raise StoreUnavailable(str(error).splitlines()[0]) from error
            raise

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in the writer's next transaction; return its result after the commit."""
        return self.writer.write(work)

    def close(self) -> None:
        """Finish what waits and let go of the database."""
        self.writer.close()
        self.engine.dispose()
