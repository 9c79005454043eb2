"""How is a training job kept safe from a failure of what only reports on it?"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from witness.report.health import Health

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Watched(Protocol):
    """Somebody who counts failures."""

    health: Health


def never_raises(
    instead: Any = None,
) -> Callable[
    [Callable[Concatenate[Any, Given], Result]], Callable[Concatenate[Any, Given], Result]
]:
    """Count whatever a method raises, and give `instead`; an interrupt by a person goes through."""

    def wrap(
        method: Callable[Concatenate[Any, Given], Result],
    ) -> Callable[Concatenate[Any, Given], Result]:
        @functools.wraps(method)
        def guarded(self: Watched, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
            try:
                return method(self, *args, **kwargs)
            except Exception as error:
                if not sys.is_finalizing():
                    self.health.failed(method.__name__, error)
                return instead  # type: ignore[no-any-return]

        return guarded

    return wrap
