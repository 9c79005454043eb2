"""Are an agent's lines found in CloudWatch Logs, each once, within bounds, refusals in words?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.sources import logs
from app.sources.log_entries import node_logs, wrong
from app.sources.logs import AGENT, CloudWatchLog, Lines, LogQuestion
from app.sources.ports import Away, Refused
from tests.doubles.cloudwatch_logs import CloudWatchLogsDouble
from tests.doubles.sagemaker import SagemakerDouble

GROUP = "/aws/sagemaker/Clusters/alpine/4k2xq9mlunp0"
NODE, OTHER = "i-0c0ffee0000000001", "i-0c0ffee0000000002"
STREAM = f"{AGENT}/gpu/{NODE}"
FAULT = '{"HealthMonitoringAgentDetectionEvent":"HealthEvent"}'
T = 1_772_446_500


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def double() -> Iterator[CloudWatchLogsDouble]:
    """Serve the double with one group."""
    with CloudWatchLogsDouble(groups={GROUP: []}) as running:
        yield running


@pytest.fixture
def log(double: CloudWatchLogsDouble) -> Iterator[CloudWatchLog]:
    """Give the client to it."""
    made = CloudWatchLog("us-west-2", GROUP, endpoint_url=double.url)
    yield made
    made.close()


def read(log: CloudWatchLog, group: str | None = "gpu", first: int = -600) -> Lines:
    return log.read(LogQuestion(NODE, group, T + first, T + 600))


def test_one_stream_is_asked_by_its_prefix_in_milliseconds(
    double: CloudWatchLogsDouble, log: CloudWatchLog
) -> None:
    double.put(GROUP, STREAM, (T * 1000 + 250, FAULT), (T * 1000, "nothing found"))
    double.put(GROUP, f"LifecycleConfig/gpu/{NODE}", (T * 1000, FAULT))
    found = read(log)
    (one,) = found.lines
    assert (one.text, one.at, one.received) == (FAULT, T + 0.25, T + 1.75)
    assert (one.stream, len(one.event_id or "")) == (STREAM, 56)
    assert not found.cut
    (asked,) = double.asked
    assert (asked["startTime"], asked["endTime"]) == ((T - 600) * 1000, (T + 600) * 1000)
    assert asked["logStreamNamePrefix"] == STREAM


def test_without_a_group_all_streams_are_looked_through(
    double: CloudWatchLogsDouble, log: CloudWatchLog
) -> None:
    double.put(GROUP, f"{AGENT}/gpu-2/{OTHER}", *((T * 1000 + one, FAULT) for one in range(50)))
    double.put(GROUP, f"{AGENT}/gpu-1/{NODE}", (T * 1000, FAULT))
    found = read(log, group=None)
    assert [one.stream for one in found.lines] == [f"{AGENT}/gpu-1/{NODE}"]
    assert double.asked[0]["logStreamNamePrefix"] == f"{AGENT}/"


def test_an_id_that_begins_like_another_is_another(
    double: CloudWatchLogsDouble, log: CloudWatchLog
) -> None:
    double.put(GROUP, f"{STREAM}ff", (T * 1000, FAULT))
    assert read(log).lines == ()


def test_empty_pages_are_not_the_end_and_no_line_comes_twice(
    double: CloudWatchLogsDouble, log: CloudWatchLog
) -> None:
    double.looked_at, double.repeats = 10, True
    double.put(GROUP, STREAM, *((T * 1000 + one, FAULT) for one in range(25)))
    double.put(GROUP, f"{AGENT}/gpu/{OTHER}", *((T * 1000 + 99, FAULT) for one in range(40)))
    found = read(log)
    assert found.pages == 7
    assert len(found.lines) == len({one.event_id for one in found.lines}) == 25
    assert [one.at for one in found.lines] == sorted((one.at for one in found.lines), reverse=True)


def test_the_newest_lines_of_a_storm_are_taken_and_the_rest_is_said(
    double: CloudWatchLogsDouble, log: CloudWatchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LINES_LIMIT", 500)
    double.looked_at = 1_000
    double.put(GROUP, STREAM, *(((T - 500) * 1000 + 50 * one, FAULT) for one in range(10_000)))
    found = read(log)
    assert (len(found.lines), found.cut, found.pages) == (500, True, 1)
    assert found.lines[0].at == pytest.approx(T - 0.05)


def test_pages_and_bytes_have_bounds(
    double: CloudWatchLogsDouble, log: CloudWatchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAGES_LIMIT", 5)
    monkeypatch.setattr(logs, "BYTES_LIMIT", 300_000)
    double.looked_at = 1
    double.put(GROUP, f"{AGENT}/gpu/{OTHER}", *((T * 1000 + one, FAULT) for one in range(9)))
    assert read(log) == Lines(cut=True, pages=5)
    double.put(GROUP, STREAM, *(((T + 9) * 1000, FAULT + "x" * 200_000) for _ in range(3)))
    found = read(log)
    assert (len(found.lines), found.cut) == (2, True)
    assert len(found.lines[0].text) > 200_000


def test_being_told_to_wait_is_waited_for(double: CloudWatchLogsDouble, log: CloudWatchLog) -> None:
    double.put(GROUP, STREAM, (T * 1000, FAULT))
    double.failures = [(400, "ThrottlingException", "Rate exceeded")]
    assert len(read(log).lines) == 1
    assert len(double.asked) == 2


def test_a_service_that_is_away_is_asked_later(
    double: CloudWatchLogsDouble, log: CloudWatchLog
) -> None:
    double.failures = [(503, "ServiceUnavailableException", "Later")] * 3
    with pytest.raises(Away, match="ServiceUnavailableException, Later"):
        read(log)
    double.failures = [(400, "ExpiredTokenException", "The token expired")]
    with pytest.raises(Away, match="ExpiredToken"):
        read(log)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AccessDeniedException", "does not allow logs:FilterLogEvents: User: nobody"),
        ("ResourceNotFoundException", f"has no log group {GROUP} in us-west-2"),
        ("InvalidParameterException", "InvalidParameterException, User: nobody"),
    ],
)
def test_a_refusal_is_told_in_words(
    double: CloudWatchLogsDouble, log: CloudWatchLog, code: str, said: str
) -> None:
    double.failures = [(400, code, "User: nobody")]
    with pytest.raises(Refused, match=said):
        read(log)
    assert len(double.asked) == 1


def test_a_group_that_is_not_there_is_a_refusal(double: CloudWatchLogsDouble) -> None:
    missing = CloudWatchLog("us-west-2", "/aws/sagemaker/Clusters/x/1", endpoint_url=double.url)
    with pytest.raises(Refused, match="has no log group"):
        read(missing)
    missing.close()


def test_a_group_of_another_account_is_asked_by_its_arn(double: CloudWatchLogsDouble) -> None:
    arn = f"arn:aws:logs:us-west-2:111122223333:log-group:{GROUP}"
    double.put(GROUP, STREAM, (T * 1000, FAULT))
    made = CloudWatchLog("us-west-2", arn, endpoint_url=double.url)
    assert len(read(made).lines) == 1
    assert double.asked[0]["logGroupIdentifier"] == arn
    made.close()


def test_nobody_there_is_away_and_no_credentials_a_refusal(
    free_port: int, double: CloudWatchLogsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = CloudWatchLog("us-west-2", GROUP, endpoint_url=f"http://127.0.0.1:{free_port}")
    with pytest.raises(Away, match="cannot be asked"):
        read(nobody)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    unknown = CloudWatchLog("us-west-2", GROUP, endpoint_url=double.url)
    with pytest.raises(Refused, match="No AWS credentials"):
        read(unknown)
    unknown.close()
    with pytest.raises(Away, match="stopping"):
        read(unknown)


GOOD = {"region": "us-west-2", "log_group": GROUP}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (GOOD, None),
        ({**GOOD, "instance_group": "gpu-1", "timeout_s": 5}, None),
        ({**GOOD, "log_group": f"arn:aws:logs:us-west-2:111122223333:log-group:{GROUP}"}, None),
        ({"region": "us-west-2", "hyperpod_cluster": "alpine"}, None),
        ({"region": "us-west-2"}, "it needs one of log_group and hyperpod_cluster"),
        ({**GOOD, "hyperpod_cluster": "x"}, "it needs one of log_group and hyperpod_cluster"),
        ({"region": "x", "hyperpod_cluster": "a/b"}, "hyperpod_cluster is no name of one"),
        ({**GOOD, "log_group": "a b"}, "log_group is neither the name of a log group nor its ARN"),
        ({"log_group": GROUP}, "region is no name of one"),
        ({**GOOD, "region": "us west"}, "region is no name of one"),
        ({**GOOD, "instance_group": "a/b"}, "instance_group is no name of one"),
        ({**GOOD, "instance_group": 7}, "instance_group is no name of one"),
        ({**GOOD, "timeout_s": True}, "timeout_s is no number of seconds from 0 to 300"),
        ({**GOOD, "endpoint_url": "file:///etc"}, "endpoint_url is no http address"),
        ({**GOOD, "stream": "x"}, "it has unknown keys: stream"),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(entry: dict[str, object], why: str | None) -> None:
    assert wrong(entry) == why


def test_a_wrong_entry_refuses_and_stops_nothing() -> None:
    found = node_logs({"alpine": GOOD, "brook": {"region": "x"}})
    assert list(found) == ["alpine", "brook"]
    with pytest.raises(Refused, match="The entry of brook in WITNESS_NODE_LOGS cannot be used"):
        found["brook"].read(LogQuestion(NODE, None, 0, 1))
    found.close()


def test_the_log_group_of_a_cluster_is_found_by_its_name_and_asked_for_once() -> None:
    with SagemakerDouble() as sagemaker, CloudWatchLogsDouble() as double:
        known = sagemaker.cluster
        group = f"/aws/sagemaker/Clusters/{known.name}/{known.arn.rsplit('/', 1)[-1]}"
        double.put(group, STREAM, (T * 1000, FAULT))
        entry = {
            "region": "us-west-2", "hyperpod_cluster": known.name, "endpoint_url": double.url,
            "sagemaker_endpoint_url": sagemaker.url,
        }  # fmt: skip
        found = node_logs({"alpine": entry, "x": {**entry, "hyperpod_cluster": "x"}})
        question = LogQuestion(NODE, "gpu", T - 1, T + 1)
        assert len(found["alpine"].read(question).lines) == 1
        assert len(found["alpine"].read(question).lines) == 1
        assert [one.operation for one in sagemaker.requests] == ["DescribeCluster"]
        with pytest.raises(Refused, match="SageMaker has no cluster x in us-west-2"):
            found["x"].read(question)
        found.close()
