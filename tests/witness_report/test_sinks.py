"""Do logs, metrics and the cluster hear of an alarm in the forms that their readers take?"""

from __future__ import annotations

import io
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.doubles.kubernetes.access import Rule, User
from tests.doubles.kubernetes.certificate import server_context
from tests.doubles.kubernetes.double import ADMIN_TOKEN, KubernetesDouble
from tests.witness_report.conftest import Making, alarm, until
from tests.witness_report.hostile import HostileServer, answer
from witness.report import Reporter, read_holds, settings
from witness.report.sinks import (
    AlarmEvent,
    EmbeddedMetrics,
    LogLine,
    Notice,
    PodApi,
    PutMetrics,
    SDCReports,
    notice_of,
)
from witness.report.sinks import kubernetes as kubernetes_module
from witness.report.sinks.kubernetes import report
from witness.report.sinks.notice import metrics_of
from witness.wire import Envelope

ENVELOPE = Envelope("alpine", "research", "llm", 3)
NOTICE = notice_of(ENVELOPE, alarm(), range(1, 2))
WHOLE_SECOND = Notice(
    ENVELOPE, "weights", 7, (), None, {}, "0" * 64, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
)


@pytest.mark.parametrize(
    ("document", "nonfinite", "mismatch", "divergent"),
    [
        (alarm(), 0, 2, 0),
        ({"check": "compute", "nonfinite": [3, 4], "mismatched_pairs": [[3, 1]]}, 2, 1, 0),
        ({"check": "reduced gradient"}, 1, 0, 0),
        ({"check": "weights", "suspects": [1], "divergent_tensors": 5}, 0, 0, 5),
        ({"check": "weights", "suspects": None}, 0, 0, 1),
        ({"check": "something new"}, 0, 0, 0),
    ],
)
def test_the_three_metrics_count_what_the_alarm_says(
    document: dict[str, Any], nonfinite: int, mismatch: int, divergent: int
) -> None:
    assert metrics_of(document) == {
        "sdc_nonfinite_grad": nonfinite,
        "sdc_replay_mismatch": mismatch,
        "sdc_divergent_tensors": divergent,
    }


def test_a_notice_says_whether_a_named_rank_runs_here() -> None:
    assert NOTICE.named == (1,)
    assert NOTICE.here is True
    assert notice_of(ENVELOPE, alarm(), range(2, 4)).here is False
    assert notice_of(ENVELOPE, alarm()).here is None
    assert notice_of(ENVELOPE, {"check": "new", "step": 3, "culprits": "odd"}).named == ()
    assert settings.ranks_here(17, 1, {"LOCAL_WORLD_SIZE": "8"}) == range(16, 24)
    assert settings.ranks_here(17, 1, {}) is None


def test_the_log_line_is_one_line_that_a_rule_matches_behind_a_launcher_s_prefix() -> None:
    stream = io.StringIO()
    LogLine(stream).tell(NOTICE)
    (line,) = stream.getvalue().splitlines()
    assert re.match(r".*SDC_ALARM.*", f"[rank0]:{line}")
    assert re.match(r'.*SDC_ALARM.*"here":true', f"[rank0]:{line}")
    said = json.loads(line.removeprefix("SDC_ALARM "))
    assert (said["check"], said["step"], said["named"]) == ("compute", 30, [1])
    assert (said["job"], said["attempt"], said["sdc_replay_mismatch"]) == ("llm", 3, 2)


def test_embedded_metrics_have_the_form_that_the_agent_reads(tmp_path: Path) -> None:
    sink = EmbeddedMetrics(tmp_path / "metrics.log", "Training")
    sink.tell(NOTICE)
    sink.tell(NOTICE)
    first, second = (tmp_path / "metrics.log").read_text().splitlines()
    assert first == second
    said = json.loads(first)
    (directive,) = said["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Training"
    assert abs(said["_aws"]["Timestamp"] / 1000 - time.time()) < 3600
    for metric in directive["Metrics"]:
        assert isinstance(said[metric["Name"]], int)
        assert metric["Unit"] == "Count"
    for dimensions in directive["Dimensions"]:
        assert 0 < len(dimensions) <= 30
        assert all(isinstance(said[name], str) and said[name] for name in dimensions)
    assert said["sdc_replay_mismatch"] == 2


class _Client:
    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def put_metric_data(self, **call: Any) -> None:
        self.calls.append(call)


def test_metrics_are_put_with_and_without_the_job() -> None:
    client = _Client()
    PutMetrics("Training", lambda: client).tell(NOTICE)
    (call,) = client.calls
    assert call["Namespace"] == "Training"
    data = call["MetricData"]
    assert len(data) == 6
    assert {one["MetricName"] for one in data} == set(NOTICE.metrics)
    values = [one["Value"] for one in data if one["MetricName"] == "sdc_replay_mismatch"]
    assert values == [2.0, 2.0]
    names = [tuple(part["Name"] for part in one["Dimensions"]) for one in data]
    assert set(names) == {("cluster", "namespace", "job"), ("cluster",)}
    assert all(one["Timestamp"].tzinfo is not None for one in data)


def test_boto_is_used_where_the_image_has_it_and_missed_quietly_where_not(
    make: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = make(None, options={"sinks": (PutMetrics(),)})
    monkeypatch.setitem(sys.modules, "botocore.config", None)
    reporter.alarm(alarm())
    until(lambda: "telling PutMetrics" in reporter.status()["failures"], "it is counted")

    client = _Client()
    given: dict[str, Any] = {}

    def make_client(name: str, config: dict[str, Any]) -> _Client:
        given.update(config, name=name)
        return client

    boto, config = ModuleType("boto3"), ModuleType("botocore.config")
    boto.client = make_client  # type: ignore[attr-defined]
    config.Config = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boto3", boto)
    monkeypatch.setitem(sys.modules, "botocore.config", config)
    PutMetrics().tell(NOTICE)
    assert given["name"] == "cloudwatch"
    assert given["connect_timeout"] <= 5
    assert len(client.calls) == 1


@pytest.fixture
def cluster() -> Iterator[KubernetesDouble]:
    """Serve a cluster over TLS."""
    narrow = User("reporter", (Rule(("create",), ("events",), ("events.k8s.io",)),))
    with KubernetesDouble(tls=True, users={"pod-token": narrow}) as made:
        yield made


def _account(folder: Path, certificate: str, token: str = ADMIN_TOKEN) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(f"{token}\n")
    (folder / "namespace").write_text("research")
    (folder / "ca.crt").write_text(certificate)
    return folder


def _pod(url: str, account: Path, **given: str) -> PodApi:
    host, _, port = url.removeprefix("https://").partition(":")
    found = PodApi.from_environment(
        {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "POD_NAME": "llm-pod-1",
            "POD_UID": "11111111-2222-3333-4444-555555555555",
            **given,
        },
        account,
    )
    assert found is not None
    return found


def test_a_warning_event_about_the_pod_is_made_once_by_all_nodes(
    cluster: KubernetesDouble, tmp_path: Path
) -> None:
    api = _pod(cluster.url, _account(tmp_path / "account", cluster.certificate, "pod-token"))
    for _ in range(3):
        AlarmEvent(api).tell(NOTICE)
    (event,) = cluster.events()
    assert (event["type"], event["reason"]) == ("Warning", "SDCAlarm")
    assert event["involvedObject"]["name"] == "llm-pod-1"
    assert event["involvedObject"]["uid"].startswith("1111")
    assert "step 30 of job llm: rank 1 named" in event["message"]
    assert [one.status for one in cluster.changes("POST")] == [201, 409, 409]


def test_an_event_at_a_whole_second_is_taken(cluster: KubernetesDouble, tmp_path: Path) -> None:
    api = _pod(cluster.url, _account(tmp_path / "account", cluster.certificate))
    AlarmEvent(api).tell(WHOLE_SECOND)
    (event,) = cluster.events()
    assert event["eventTime"] == "2026-01-02T03:04:05.000000Z"
    assert "no rank is named" in event["message"]


def test_a_note_that_names_many_ranks_stays_within_the_limit(
    cluster: KubernetesDouble, tmp_path: Path
) -> None:
    many = Notice(
        Envelope("alpine", "research", "ü" * 2000, 1), "compute", 7, tuple(range(500)), None,
        {}, "1" * 64, datetime.now(UTC),
    )  # fmt: skip
    AlarmEvent(_pod(cluster.url, _account(tmp_path / "a", cluster.certificate))).tell(many)
    assert len(cluster.events()[0]["message"].encode()) <= 1024


def test_a_pod_that_may_not_is_counted_and_nothing_else(
    cluster: KubernetesDouble, make: Making, tmp_path: Path
) -> None:
    account = _account(tmp_path / "account", cluster.certificate, "pod-token")
    reports = SDCReports(_pod(cluster.url, account))
    reporter = make(None, options={"sinks": (reports, AlarmEvent(_pod(cluster.url, account)))})
    assert reporter.alarm(alarm())
    until(lambda: len(cluster.events()) == 1, "the other sink is told")
    failures = reporter.status()["last_failures"]
    assert "sdcreports" in failures["telling SDCReports"]
    assert len(cluster.changes("POST")) == 2  # a refusal is not asked again


def test_an_sdc_report_is_made_for_each_named_rank(tmp_path: Path) -> None:
    context, certificate = server_context(tmp_path)
    with HostileServer(answer(201, b"{}"), context) as server:
        api = _pod(server.url, _account(tmp_path / "account", certificate, "pod-token"))
        named = notice_of(ENVELOPE, {**alarm(), "culprits": [1, 2]})
        SDCReports(api).tell(named)
        SDCReports(api, "example.org/v1").tell(notice_of(ENVELOPE, {"check": "x", "step": 7}))
        heads = [head.split(b" ")[1].decode() for head in server.heads]
        own = "/apis/silent-witness.io/v1alpha1/namespaces/research/sdcreports"
        assert heads == [own, own, own.replace("silent-witness.io/v1alpha1", "example.org/v1")]
        bodies = [json.loads(body) for body in server.bodies]
        assert [body["spec"].get("rank") for body in bodies] == [1, 2, None]
        first = bodies[0]
        assert first["kind"] == "SDCReport"
        assert first["spec"].items() >= {"job": "llm", "step": 30, "check": "compute"}.items()
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", first["metadata"]["name"])
        assert b"Authorization: Bearer pod-token" in server.heads[0]


def test_an_api_server_that_is_busy_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_module, "_PAUSES_S", (0.01, 0.01))
    context, certificate = server_context(tmp_path)
    with HostileServer(answer(503), context) as server:
        api = _pod(server.url, _account(tmp_path / "account", certificate))
        with pytest.raises(kubernetes_module.KubernetesError, match="503"):
            api.create("/x", {})
        assert len(server.heads) == 3


def test_outside_a_pod_there_is_no_api_and_ipv6_hosts_are_bracketed(tmp_path: Path) -> None:
    assert PodApi.from_environment({}, tmp_path) is None
    given = {"KUBERNETES_SERVICE_HOST": "fd00::1", "HOSTNAME": "p", "POD_NAMESPACE": "n"}
    api = PodApi.from_environment(given, tmp_path)
    assert api is not None
    assert (api.url, api.pod, api.namespace) == ("https://[fd00::1]:443", "p", "n")
    without = {**given, "POD_NAMESPACE": ""}
    assert PodApi.from_environment(without, tmp_path) is None


def test_a_sink_that_hangs_holds_up_neither_alarm_nor_end(make: Making) -> None:
    released = threading.Event()

    class Hanging:
        def tell(self, _: Notice) -> None:
            released.wait(20)

    reporter = make(None, options={"sinks": (Hanging(),)})
    began = time.monotonic()
    assert reporter.alarm(alarm())
    reporter.close(0.4)
    assert time.monotonic() - began < 1.5
    released.set()


def test_the_environment_chooses_the_sinks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def chosen(**environ: str) -> list[str]:
        return [type(one).__name__ for one in settings.from_environment(environ)["options"].sinks]

    assert chosen() == ["LogLine"]
    assert chosen(WITNESS_SINKS="") == []
    assert chosen(WITNESS_SINKS="emf, cloudwatch") == ["EmbeddedMetrics", "PutMetrics"]
    pod = {"KUBERNETES_SERVICE_HOST": "h", "POD_NAME": "p", "POD_NAMESPACE": "n"}
    assert chosen(WITNESS_SINKS="event,sdcreport", **pod) == ["AlarmEvent", "SDCReports"]
    assert chosen(WITNESS_SINKS="event,nonsense") == []
    assert "'nonsense'" in caplog.text


def test_the_reporter_of_an_environment_writes_the_line_and_the_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WITNESS_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("WITNESS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("WITNESS_JOB", "llm")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    reporter = Reporter.from_environment(rank=1, local_rank=0, world_size=3)
    assert reporter.alarm(alarm())
    reporter.close()
    line = capsys.readouterr().out
    assert line.startswith("SDC_ALARM {")
    assert '"here":true' in line
    assert [one.first for one in read_holds(tmp_path / "checkpoints")] == [21]
    assert len(list((tmp_path / "spool").glob("run-*/*.alarm.json"))) == 1


def test_the_resource_s_definition_in_the_docs_fits_what_is_sent(root: Path) -> None:
    text = (root / "docs" / "reporter.md").read_text().split("```yaml\n")[1].split("```")[0]
    role, definition = yaml.safe_load_all(text)
    version = definition["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for notice, rank in ((NOTICE, 1), (WHOLE_SECOND, None)):
        sent = report(notice, rank)
        assert sent["apiVersion"] == f"{definition['spec']['group']}/{version['name']}"
        assert sent["kind"] == definition["spec"]["names"]["kind"]
        assert set(schema["required"]) <= set(sent["spec"]) <= set(schema["properties"])
        kinds = {"integer": int, "string": str}
        for key, value in sent["spec"].items():
            assert isinstance(value, kinds[schema["properties"][key]["type"]])
    granted = {(group, one) for rule in role["rules"] for group in rule["apiGroups"]
               for one in rule["resources"]}  # fmt: skip
    assert granted == {("events.k8s.io", "events"), ("silent-witness.io", "sdcreports")}
