"""Do the calls of a training loop come in the order that the checks need?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class CallOrderError(RuntimeError):
    """The loop called the guard in an order in which its checks mean nothing."""


class CallOrder:
    """One step at a time: forward, its inspection, its update; steps only go on.

    `step` is the step under way, or the last one; before the first it is `start_step`. `done` is
    the last step that was checked, `start_step - 1` before the first; `applied` the last one that
    was applied, None before the first.
    """

    def __init__(self, start_step: int) -> None:
        self.step = start_step
        self.done = start_step - 1
        self.applied: int | None = None
        self._state = "idle"
        self._stopped: str | None = None

    @contextmanager
    def forward(self, step: int) -> Iterator[None]:
        """Open a step; a body that raises leaves the step undone, so it may be tried again."""
        self._may_begin(step)
        self.step, self._state = step, "inside"
        try:
            yield
        except BaseException:
            self._state = "idle"
            raise
        self._state = "computed"

    def inspected(self) -> None:
        """Note that the step under way is being checked, once."""
        if self._state == "inside":
            raise CallOrderError(
                f"step {self.step} is checked inside forward(): leave its block first"
            )
        if self._state != "computed":
            raise CallOrderError("no step to check: forward(step) comes before update(loss)")
        self._state, self.done = "inspected", self.step

    def updated(self) -> None:
        """Note that the step that was checked has been applied."""
        if self._state != "inspected":
            raise CallOrderError("no checked step to complete: inspect(loss) comes first")
        self._state, self.applied = "idle", self.step

    def between_steps(self, what: str) -> None:
        """Refuse what may only happen between two steps."""
        self._refuse_after_alarm()
        if self._state in ("inside", "computed"):
            raise CallOrderError(f"{what} belongs between steps, and step {self.step} is open")

    def stop(self, why: str) -> None:
        """Refuse every further step, until `go_on`."""
        self._state, self._stopped = "idle", why

    def go_on(self, step: int) -> None:
        """Take steps again, from `step` on, which may lie before the last one."""
        if self._state != "idle":
            raise CallOrderError(f"step {self.step} is open: complete it first")
        self._stopped, self.step, self.done = None, step, step - 1

    def _may_begin(self, step: int) -> None:
        self._refuse_after_alarm()
        if self._state in ("inside", "computed"):
            raise CallOrderError(
                f"forward({step}) though step {self.step} was not completed by update(loss); all "
                "micro-batches of a step run inside one forward()"
            )
        if step <= self.done:
            raise CallOrderError(
                f"forward({step}) though step {self.done} is done: steps only go on; after going "
                f"back to a checkpoint call go_on({step}) first"
            )

    def _refuse_after_alarm(self) -> None:
        if self._stopped is not None:
            raise CallOrderError(
                f"this job has an alarm ({self._stopped}): no further step is taken; after "
                "restoring a state from before it, call go_on(step)"
            )
