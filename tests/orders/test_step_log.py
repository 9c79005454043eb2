"""Does every step of every action reach CloudWatch, once it is back, and never too much at once?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from app.actions.forwarding import LASTS, Forwarder
from app.cluster.errors import ClusterError, ClusterNotConfigured
from app.cluster.step_log import BYTES, EVENTS, Step, batches, line, step_log
from app.store import audit, audit_reading
from app.store.connection import Connection
from tests.doubles.cloudwatch_steps import StepsDouble
from tests.orders.yard import Yard


@pytest.fixture
def steps() -> Iterator[StepsDouble]:
    """Run a log group."""
    with StepsDouble() as double:
        yield double


def test_the_whole_life_of_a_replacement_is_sent(yard: Yard, steps: StepsDouble) -> None:
    steps.now = yard.context.now()
    forwarder = Forwarder(yard.context, step_log(steps.entry()))
    sent = yard.run(yard.approve("replace", 2))
    yard.pass_time(60)
    assert forwarder.send_new() > 3
    verbs = [one["verb"] for one in steps.lines()]
    assert verbs == [one.verb for one in _entries(yard)]
    assert "proposal.verified" in verbs
    first = steps.lines()[0]
    assert first["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["verb"]]
    assert first["steps"] == 1
    assert first["entry"]["hash"] == _entries(yard)[0].hash
    assert forwarder.send_new() == 0
    assert sent.id


def test_what_could_not_be_sent_is_sent_later_and_in_order(yard: Yard, steps: StepsDouble) -> None:
    steps.now = yard.context.now()
    forwarder = Forwarder(yard.context, step_log(steps.entry()))
    yard.run(yard.approve("cordon", 1))
    steps.failures = [(400, "AccessDeniedException")]
    with pytest.raises(ClusterError, match="AccessDenied"):
        forwarder.send_new()
    yard.run(yard.approve("cordon", 2))
    forwarder.send_new()
    assert [one["entry"]["id"] for one in steps.lines()] == [str(one.id) for one in _entries(yard)]


def test_two_processes_send_each_step_once(yard: Yard, steps: StepsDouble) -> None:
    steps.now = yard.context.now()
    one, other = (Forwarder(yard.context, step_log(steps.entry())) for _ in range(2))
    yard.run(yard.approve("cordon", 1))
    assert one.send_new() > 0
    yard.run(yard.approve("cordon", 2))
    assert other.send_new() == 0
    yard.sagemaker.advance(seconds=LASTS.total_seconds() + 1)
    assert other.send_new() > 0
    assert len(steps.lines()) == len(_entries(yard))


def test_calls_stay_within_what_the_service_takes() -> None:
    at = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp() * 1000)
    days = [Step(at + day * 25 * 3600 * 1000, "a.b", {"id": str(day)}) for day in range(3)]
    assert [len(one) for one in batches(days, "N")] == [1, 1, 1]
    assert [len(one) for one in batches([days[0]] * (EVENTS + 1), "N")] == [EVENTS, 1]
    big = Step(at, "a.b", {"id": "7", "hash": "h", "summary": "x" * 150_000})
    for call in batches([big] * 20, "N"):
        assert sum(len(one["message"]) + 26 for one in call) <= BYTES
    huge = Step(at, "a.b", {"id": "7", "hash": "h", "summary": "é" * 300_000})
    assert len(line(huge, "N")) < 1_000
    assert '"cut": true' in line(huge, "N")


def test_entries_too_old_for_the_service_are_left_behind(yard: Yard, steps: StepsDouble) -> None:
    old = yard.context.now() - timedelta(days=20)
    steps.now = yard.context.now()

    def write(connection: Connection) -> None:
        audit.append(connection, "ann", "case.noted", "long ago", at=old)
        audit.append(connection, "ann", "case.noted", "today", at=yard.context.now())

    yard.context.store.write(write)
    forwarder = Forwarder(yard.context, step_log(steps.entry()))
    assert forwarder.send_new() == 2
    assert [one["entry"]["summary"] for one in steps.lines()] == ["today"]
    assert forwarder.send_new() == 0


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"region": "west", "log_group": "g"}, "no region"),
        ({"region": "us-west-2"}, "no log group"),
        ({"region": "us-west-2", "log_group": "g", "bucket": "b"}, "unknown keys: bucket"),
        ({"region": "us-west-2", "log_group": 7}, "no text"),
    ],
)
def test_a_wrong_setting_says_so_and_stops_nothing(entry: dict[str, str], why: str) -> None:
    broken = step_log(entry)
    assert broken is not None
    with pytest.raises(ClusterNotConfigured, match=why):
        broken.put([])
    assert step_log({}) is None


def _entries(yard: Yard) -> tuple[audit.Entry, ...]:
    with yard.context.store.reading() as connection:
        return tuple(audit_reading.walk(connection, audit_reading.Filter()))
