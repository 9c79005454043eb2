"""What can come of one question about a machine, or of its log?"""

from __future__ import annotations

from dataclasses import dataclass

from app.store.node_records import Raw


class NoWay(Exception):
    """There is nobody to ask, or the machine is not known well enough; a sentence for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to keep, what is to be said of it, whether there is more than was taken.

    `gone` says that the cluster knows no such node.
    """

    found: tuple[Raw, ...] = ()
    said: str | None = None
    cut: bool = False
    gone: bool = False
