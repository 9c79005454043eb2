"""Is what a cluster's add-on says found through EKS, kept, doubted, and asked for again?"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from app.sources import add_on, discovery, sigv4
from app.sources.add_on import Allowed
from app.sources.ports import About, Away, MetricSource, Question, Refused
from app.sources.registry import sources
from tests.sources import eks as doubles
from tests.sources.conftest import Troubled, matrix
from tests.sources.eks import PATH, Eks

ASKED = Question(("GPU-a0000002-1111-4222-8333-000000000005",), 1000.0, 1600.0)
REGION = "eu-central-1"
SAID: dict[str, Any] = {
    "ampWorkspace": {"prometheusEndpoint": "https://aps/workspaces/ws-1/", "arn": "arn:aws:aps"},
    "amgWorkspace": {"workspaceName": "gpu", "arn": "arn:aws:grafana"},
    "metricsProvider": {
        "acceleratedComputeMetrics": {"level": "ADVANCED", "scrapeInterval": 30},
    },
}
YAML = """
ampWorkspace:
  prometheusEndpoint: https://aps/workspaces/ws-1/
amgWorkspace: {workspaceName: gpu}
metricsProvider:
  acceleratedComputeMetrics:
    level: ADVANCED
    scrapeInterval: 30
"""
WHOLE = discovery.AddOn("https://aps/workspaces/ws-1/", "advanced", 30.0, "gpu")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setattr(sigv4, "session", sigv4._Session().get)
    monkeypatch.setattr(discovery, "session", sigv4.session)


@pytest.fixture
def eks() -> Iterator[Eks]:
    with doubles.serving() as running:
        yield running


class Clock:
    """A time that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(add_on, "time", SimpleNamespace(monotonic=lambda: self.now))


def source(eks: Eks, **more: Any) -> MetricSource:
    entry = {"kind": "amp", "region": REGION, "eks_cluster": "fleet", "endpoint_url": eks.url}
    (one,) = sources({"alpine": [entry | more]})["alpine"]
    return one


def endpoint(url: str) -> dict[str, Any]:
    return {**SAID, "ampWorkspace": {"prometheusEndpoint": url}}


def level(kind: Any, interval: Any = None) -> str:
    metrics = {"level": kind, "scrapeInterval": interval}
    return json.dumps({"metricsProvider": {"acceleratedComputeMetrics": metrics}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps(SAID), WHOLE),
        (YAML, WHOLE),
        ("", discovery.AddOn()),
        (" \n", discovery.AddOn()),
        ("{}", discovery.AddOn()),
        ('{"ampWorkspace": 7, "metricsProvider": []}', discovery.AddOn()),
        (level("SOME", True), discovery.AddOn()),
        (level("basic"), discovery.AddOn(level="basic")),
        (level("basic", "15s"), discovery.AddOn(level="basic", interval_s=15.0)),
        (level("basic", float("nan")), discovery.AddOn(level="basic")),
        (level("basic", float("inf")), discovery.AddOn(level="basic")),
        (level("basic", 10**300), discovery.AddOn(level="basic")),
        (level(["basic"], -1), discovery.AddOn()),
        (level(None, "1e9"), discovery.AddOn()),
    ],
)
def test_the_add_on_says_where_and_how_much(text: str, expected: discovery.AddOn) -> None:
    assert discovery.read(text) == expected


BOMB = "a: &a [x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n"
    for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)
DEEP_YAML = "".join(f"{'  ' * place}k{place}:\n" for place in range(2000))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "neither JSON nor YAML"),
        ("[1, 2]", "are no object"),
        ("7", "are no object"),
        ('"text"', "are no object"),
        ("[" * 60_000, "nested deeper than 24"),
        ('{"a":' * 10_000, "nested deeper than 24"),
        (DEEP_YAML[:60_000], "nested deeper than 24"),
        ("a: " + "- " * 20_000, "neither JSON nor YAML|nested deeper"),
        (BOMB, "refer to themselves"),
        ("a: &a {k: v}\nb: {<<: [*a, *a]}", "refer to themselves"),
        ("x" * 70_000, "longer than 64 KiB"),
        ("a: 1\n---\nb: 2", "neither JSON nor YAML"),
        ("a: \x00", "neither JSON nor YAML"),
        ('{"n": ' + "1" * 5000 + "}", None),
        ("a: !!python/object/apply:os.system ['true']", None),
        ("a: 2026-99-99", None),
    ],
)
def test_hostile_settings_are_refused_in_words_and_at_once(text: str, says: str | None) -> None:
    began = time.process_time()
    if says is None:
        assert discovery.read(text) == discovery.AddOn()
    else:
        with pytest.raises(Refused, match=says):
            discovery.read(text)
    assert time.process_time() - began < 2


def test_the_address_is_found_through_eks_and_asked_for_once(
    troubled_tls: Troubled, eks: Eks
) -> None:
    eks.settings(endpoint(f"{troubled_tls.url}/workspaces/ws-1/"))
    troubled_tls.replies = [matrix()]
    host = troubled_tls.url.removeprefix("https://")
    one = source(eks, hosts=[host], ca_file=troubled_tls.ca_file)
    one.pull(ASKED)
    about = one.about()
    one.pull(ASKED)
    one.close()
    assert eks.asked == [PATH]
    assert (about.level, about.interval_s) == ("advanced", 30.0)
    assert about.through == "the add-on of fleet"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://aps-workspaces.eu-central-1.amazonaws.com/workspaces/ws-1", "no https address"),
        ("https://169.254.169.254/latest", "no host of Amazon"),
        ("https://evil.example/workspaces/ws-1", "no host of Amazon"),
        ("https://aps-workspaces.eu-central-1.amazonaws.com.evil.example/", "no host of Amazon"),
        ("https://evil-aps-workspaces.eu-central-1.amazonaws.com/", "no host of Amazon"),
        ("https://aps-workspaces.eu-central-1.amazonaws.com:8443/", "no host of Amazon"),
        ("https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1", "lies in us-west-2"),
        ("https://key:secret@aps-workspaces.eu-central-1.amazonaws.com/", "holds credentials"),
        ("https://evil.example\\@aps-workspaces.eu-central-1.amazonaws.com/", "no address has"),
        ("https://aps-workspaces.eu-central-1.amazonaws.com/?to=x", "more than host and path"),
        ("https://aps-workspaces.eu-central-1.amazonaws.com/#x", "more than host and path"),
        ("https://aps-workspaces.eu-central-1.amazonaws.com/\r\nX: y", "no address has"),
        ("https://aps-workspaces.eu-central-1.amazonaws.com/\ud800", "no address has"),
        ("https://[::1", "cannot be read"),
        ("https://a:99999/", "cannot be read"),
        ("file:///etc/passwd", "no https address"),
    ],
)
def test_nothing_is_signed_for_an_address_of_strangers(eks: Eks, url: str, says: str) -> None:
    eks.settings(endpoint(url))
    one = source(eks)
    with pytest.raises(Refused, match=says) as raised:
        one.pull(ASKED)
    assert "secret" not in str(raised.value)
    assert one.about().level == "advanced"  # what it collects is no secret and no danger
    one.close()


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("aps-workspaces.eu-central-1.amazonaws.com", REGION),
        ("aps-workspaces.eu-central-1.amazonaws.com:443", REGION),
        ("vpce-0abc-1de.aps-workspaces.eu-central-1.vpce.amazonaws.com", REGION),
        ("vpce-0abc-eu-central-1a.aps-workspaces.eu-central-1.vpce.amazonaws.com", REGION),
        ("aps-workspaces.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("Metrics.Example", REGION),
        ("metrics.example:8443", REGION),
    ],
)
def test_hosts_of_amazon_and_of_the_operator_are_used(host: str, region: str) -> None:
    allowed = Allowed(("metrics.example", "metrics.example:8443"), signs_for=region)
    assert allowed.checked(f"https://{host}/workspaces/ws-1/") == f"https://{host}/workspaces/ws-1"


def test_a_token_goes_only_where_the_operator_says() -> None:
    url = "https://metrics.example/"
    with pytest.raises(Refused, match="do not name metrics"):
        Allowed(tells=True).checked(url)
    assert Allowed(("metrics.example",), tells=True).checked(url) == url[:-1]
    assert Allowed().checked(url) == url[:-1]


def test_an_add_on_that_is_away_for_a_moment_is_asked_again(
    eks: Eks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    eks.fails(503, "ServiceUnavailableException", "later")
    one = source(eks, url="http://127.0.0.1:9", kind="prometheus")
    assert one.about() == About("alpine/1", "http://127.0.0.1:9")
    first = len(eks.asked)
    for _ in range(20):
        assert one.about().level is None
    assert len(eks.asked) == first  # the same refusal, without asking
    eks.settings(SAID)
    clock.now += add_on.BACK_OFF_S[0]
    assert (one.about().level, one.about().interval_s) == ("advanced", 30.0)
    assert len(eks.asked) == first + 1
    one.close()


def test_the_waits_grow_to_their_bound_and_no_further(
    eks: Eks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    eks.fails(403, "AccessDeniedException", "no\u0000 right " + "x" * 5000)
    one = source(eks)
    for wait in (*add_on.BACK_OFF_S, add_on.BACK_OFF_S[-1]):
        for early in (0.0, wait - 1):
            clock.now += early
            with pytest.raises(Refused, match="no right x") as raised:
                one.pull(ASKED)
            assert len(str(raised.value)) < 500
        clock.now += 1
    assert len(eks.asked) == 5
    one.close()


def test_what_it_said_counts_on_while_it_cannot_be_asked(
    eks: Eks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    eks.settings(SAID)
    one = source(eks)
    assert one.about().level == "advanced"
    eks.fails(500, "ServerException", "broken")
    clock.now += add_on.KEEP_S
    assert one.about().level == "advanced"
    eks.settings(level("BASIC", 60))
    clock.now += add_on.BACK_OFF_S[0]
    assert (one.about().level, one.about().interval_s) == ("basic", 60.0)
    one.close()


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (404, "ResourceNotFoundException", Refused),
        (403, "AccessDeniedException", Refused),
        (400, "ThrottlingException", Away),
        (429, "TooManyRequestsException", Away),
        (503, "ServiceUnavailableException", Away),
        (403, "ExpiredTokenException", Away),
    ],
)
def test_what_may_pass_is_told_from_a_refusal(
    eks: Eks, status: int, error: str, kind: type[Exception]
) -> None:
    eks.fails(status, error, "No addon: x found in cluster: fleet")
    with pytest.raises(kind, match="No addon: x found"):
        source(eks).pull(ASKED)


@pytest.mark.parametrize("document", [{}, {"addon": None}, {"addon": {}}, [], "x"])
def test_an_answer_without_an_add_on_is_no_fault_of_ours(eks: Eks, document: Any) -> None:
    eks.says(document)
    with pytest.raises((Refused, Away)):
        source(eks).pull(ASKED)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"\xff\xfe"])
def test_nonsense_from_eks_is_no_fault_of_ours(eks: Eks, body: bytes) -> None:
    eks.body = body
    with pytest.raises((Refused, Away)):
        source(eks).pull(ASKED)


def test_nobody_there_is_away() -> None:
    with pytest.raises(Away, match="EKS cannot be asked"):
        source(Eks(url="http://127.0.0.1:9")).pull(ASKED)
