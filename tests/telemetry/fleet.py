"""How does a test give a cluster a source that holds every GPU of its job, at any time?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.sources.ports import About, Pulled, Question
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import labels
from witness.rules.samples import RawSeries

Value = Callable[[str, int, float], float]


class Fleet:
    """A source with a sample every 30 s; `values` says what a field shows for a rank at a time.

    GPUs in `silent` send nothing after the time given. The first questions meet `failures`.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        silent: Mapping[int, float] | None = None,
        world: int = 32,
        failures: tuple[Exception, ...] = (),
    ) -> None:
        self.values, self.silent, self.asked = values, silent or {}, 0
        self.world, self.failures = world, failures

    def about(self) -> About:
        return About("a fleet", "a fleet", interval_s=30.0)

    def pull(self, question: Question) -> Pulled:
        self.asked += 1
        for failure in self.failures[:1]:
            self.failures = self.failures[1:]
            raise failure
        ranks = [one for one in range(self.world) if d.gpu(one) in question.uuids]
        series = tuple(one for rank in ranks for one in self._of(rank, question))
        return Pulled(series=series, queries=1)

    def _of(self, rank: int, question: Question) -> list[RawSeries]:
        end = min(question.end, self.silent.get(rank, question.end))
        times = [question.start + 30.0 * place for place in range(int((end - question.start) / 30))]
        return [
            RawSeries(labels(field, rank), [(at, value(field, rank, at)) for at in times])
            for field, value in self.values.items()
        ]

    def close(self) -> None:
        pass


def using(service: Service, fleet: Fleet) -> Service:
    """Let the metrics of the cluster come from a double."""
    service.context = replace(service.context, sources={"alpine": (fleet,)})
    return service
