"""Does a cluster whose source hangs leave the metrics of all others alone?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.actions.telemetry import pulling, slow_sources
from app.actions.telemetry.slow_sources import RESTS_S, SLOW_S, SlowSources
from app.sources.ports import About, Away, Pulled, Question
from app.store.tables import telemetry_windows
from tests.actions.service import Service
from tests.telemetry.conftest import post_job

Serve = Callable[..., Service]


class Clock:
    """Seconds that pass only where somebody lets them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """A source of which each question takes long and comes to nothing."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.asked = clock, seconds, 0

    def about(self) -> About:
        return About("slow", "slow")

    def pull(self, question: Question) -> Pulled:
        self.asked += 1
        self.clock.now += self.seconds
        raise Away("No answer within the time limit.")

    def close(self) -> None:
        pass


class Quick(Slow):
    """One that answers at once."""

    def pull(self, question: Question) -> Pulled:
        self.asked += 1
        return Pulled(queries=1)


def tries(service: Service) -> dict[str, list[int]]:
    table = telemetry_windows
    with service.context.store.reading() as connection:
        rows = connection.execute(sa.select(table.c.cluster, table.c.tries, table.c.state))
        found: dict[str, list[int]] = {}
        for one in rows:
            assert one.state != "claimed"
            found.setdefault(one.cluster, []).append(one.tries)
    return {cluster: sorted(listed) for cluster, listed in found.items()}


def test_a_cluster_that_hangs_goes_behind_all_others(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "AT_ONCE", 4)
    clock = Clock()
    hanging, quick = Slow(clock, 90.0), Quick(clock, 0.0)
    service = serve()
    service.context = replace(service.context, sources={"alpine": (hanging,), "brook": (quick,)})
    post_job(service)
    pulling.plan_wanted(service.context)
    slow = SlowSources(clock)
    assert pulling.pull_due(service.context, "one", slow=slow) == 11
    assert (hanging.asked, tries(service)["alpine"]) == (1, [0] * 7 + [1] * 4)
    _move(service, 4, "brook")
    assert pulling.pull_due(service.context, "one", slow=slow, waits=False) == 4
    assert pulling.pull_due(service.context, "one", slow=slow, waits=False) == 0
    assert (quick.asked, hanging.asked) == (1, 1)
    # Who may wait takes one question of it at a time, and nothing of it is left out for ever.
    assert pulling.pull_due(service.context, "two", slow=slow) > 0
    assert hanging.asked == 2
    clock.now += RESTS_S + 1
    assert slow.names() == ()


def _move(service: Service, count: int, cluster: str) -> None:
    """Let some windows that had no turn be another cluster's."""
    table = telemetry_windows
    chosen = sa.select(table.c.id).where(table.c.tries == 0).order_by(table.c.id).limit(count)
    service.context.store.write(
        lambda c: c.execute(
            table.update()
            .where(table.c.id.in_(list(c.execute(chosen).scalars())))
            .values(cluster=cluster)
        )
    )


def test_a_source_that_answers_in_time_is_as_any_other() -> None:
    clock = Clock()
    slow = slow_sources.SlowSources(clock)
    slow.note("alpine", SLOW_S)
    assert slow.names() == ()
    slow.note("alpine", SLOW_S + 1)
    assert slow.names() == ("alpine",)
    slow.note("alpine", 0.1)
    assert slow.names() == ()
