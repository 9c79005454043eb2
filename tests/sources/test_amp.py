"""Is a request to Amazon Managed Prometheus signed as its front checks it?"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import CredentialRetrievalError

from app.sources import sigv4
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
