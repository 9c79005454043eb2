"""Is a request to Amazon Managed Prometheus signed as its front checks it, and found by itself?"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import CredentialRetrievalError

from app.sources import discovery, sigv4
from app.sources.ports import Away, Question, Refused
from app.sources.registry import sources
from tests.sources.conftest import Troubled, matrix

UUID = "GPU-a0000002-1111-4222-8333-000000000005"
ASKED = Question((UUID,), 1000.0, 1600.0)
KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI", "session-token"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setattr(sigv4, "session", sigv4._Session().get)
    monkeypatch.setattr(discovery, "session", sigv4.session)


def signed_again(url: str, body: bytes, sent: dict[str, str]) -> str:
    """Compute the signature that the front expects for these bytes at the time they say."""

    class AtThatTime(SigV4Auth):  # type: ignore[misc]
        def _modify_request_before_signing(self, request: Any) -> None:
            super()._modify_request_before_signing(request)
            request.headers.replace_header("X-Amz-Date", sent["X-Amz-Date"])
            request.context["timestamp"] = sent["X-Amz-Date"]

        def add_auth(self, request: Any) -> None:
            request.context["timestamp"] = sent["X-Amz-Date"]
            self._modify_request_before_signing(request)
            canonical = self.canonical_request(request)
            signature = self.signature(self.string_to_sign(request, canonical), request)
            self._inject_signature_to_request(request, signature)

    plain = {"Content-Type": sent["Content-Type"], "Accept": sent["Accept"]}
    request = AWSRequest("POST", url, data=body, headers=plain)
    AtThatTime(Credentials(KEY, SECRET, TOKEN), "aps", "eu-central-1").add_auth(request)
    return str(request.headers["Authorization"])


def test_the_exact_bytes_are_signed_for_aps(troubled: Troubled) -> None:
    troubled.replies = [matrix()]
    url = f"{troubled.url}/workspaces/ws-1"
    entry = {"kind": "amp", "url": url, "region": "eu-central-1", "samples_limit": 5_000_000}
    (one,) = sources({"alpine": [entry]})["alpine"]
    one.pull(ASKED)
    one.close()
    sent = troubled.headers[0]
    assert sent["X-Amz-Security-Token"] == TOKEN
    assert "/eu-central-1/aps/aws4_request" in sent["Authorization"]
    assert sent["Authorization"] == signed_again(f"{url}/api/v1/query", troubled.bodies[0], sent)
    assert troubled.forms[0]["max_samples_processed_error_threshold"] == "5000000"


def test_credentials_that_cannot_be_refreshed_now_are_no_refusal(
    troubled: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Session:
        def get_credentials(self) -> None:
            raise CredentialRetrievalError(provider="a role", error_msg="secret-of-ours")

    monkeypatch.setattr(sigv4, "session", Session)
    entry = {"kind": "amp", "url": troubled.url, "region": "eu-central-1"}
    (one,) = sources({"alpine": [entry]})["alpine"]
    with pytest.raises(Away, match="CredentialRetrievalError") as raised:
        one.pull(ASKED)
    assert "secret-of-ours" not in str(raised.value)
    one.close()


def test_no_credentials_is_a_refusal(troubled: Troubled, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody:
        def get_credentials(self) -> None:
            return None

    monkeypatch.setattr(sigv4, "session", Nobody)
    entry = {"kind": "amp", "url": troubled.url, "region": "eu-central-1"}
    (one,) = sources({"alpine": [entry]})["alpine"]
    with pytest.raises(Refused, match="No AWS credentials"):
        one.pull(ASKED)
    assert troubled.forms == []


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps(SAID), WHOLE),
        (YAML, WHOLE),
        ("", discovery.AddOn()),
        ("{", discovery.AddOn()),
        ('{"ampWorkspace": 7, "metricsProvider": []}', discovery.AddOn()),
        ('{"metricsProvider": {"acceleratedComputeMetrics": {"level": "SOME",'
         ' "scrapeInterval": true}}}', discovery.AddOn()),
        ('{"metricsProvider": {"acceleratedComputeMetrics": {"level": "basic"}}}',
         discovery.AddOn(level="basic")),
    ],
)  # fmt: skip
def test_the_add_on_says_where_and_how_much(text: str, expected: discovery.AddOn) -> None:
    assert discovery.read(text) == expected


class _Eks(BaseHTTPRequestHandler):
    """As EKS answers to `DescribeAddon`."""

    asked: ClassVar[list[str]] = []
    status = 200
    answer: ClassVar[dict[str, Any]] = {}

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps(self.answer).encode()
        self.send_response(self.status)
        if self.status != 200:
            self.send_header("x-amzn-ErrorType", "ResourceNotFoundException")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def eks() -> Any:
    handler = type("Eks", (_Eks,), {"asked": [], "answer": {}, "status": 200})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    handler.url = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_address_is_found_through_eks_and_asked_for_once(troubled: Troubled, eks: Any) -> None:
    said = {**SAID, "ampWorkspace": {"prometheusEndpoint": f"{troubled.url}/workspaces/ws-1/"}}
    eks.answer = {"addon": {"addonName": discovery.ADD_ON, "configurationValues": json.dumps(said)}}
    troubled.replies = [matrix()]
    entry = {
        "kind": "amp",
        "region": "eu-central-1",
        "eks_cluster": "fleet",
        "endpoint_url": eks.url,
    }
    (one,) = sources({"alpine": [entry]})["alpine"]
    one.pull(ASKED)
    about = one.about()
    one.pull(ASKED)
    one.close()
    assert eks.asked == [f"/clusters/fleet/addons/{discovery.ADD_ON}"]
    assert (about.level, about.interval_s, about.through) == (
        "advanced",
        30.0,
        "the add-on of fleet",
    )


def test_an_add_on_that_is_not_there_is_a_refusal(eks: Any) -> None:
    eks.status, eks.answer = 404, {"message": "No addon: x found in cluster: fleet"}
    entry = {
        "kind": "amp",
        "region": "eu-central-1",
        "eks_cluster": "fleet",
        "endpoint_url": eks.url,
    }
    (one,) = sources({"alpine": [entry]})["alpine"]
    with pytest.raises(Refused, match="No addon: x found"):
        one.pull(ASKED)
    assert one.about().level is None
    one.close()
