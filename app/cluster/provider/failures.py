"""What does a failed exchange with SageMaker mean, and may an order have been taken?

The exceptions of botocore end here: nothing outside `app.cluster` ever sees one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.cluster.errors import (
    ClusterError,
    ClusterFailed,
    ClusterNotConfigured,
    ClusterRefused,
    ClusterTimeout,
    ClusterUnreachable,
)
from app.cluster.provider.ports import Answer

THROTTLED = frozenset(
    {"ThrottlingException", "Throttling", "ThrottledException", "TooManyRequestsException",
     "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "SlowDown"}
)  # fmt: skip
STALE = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId",
     "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch"}
)  # fmt: skip
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
MISSING = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
INVALID = frozenset({"ValidationException", "ValidationError"})
_ABSENT = ("not found", "could not find", "does not exist", "doesn't exist", "no such", "unknown")
_WORDS_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer that is no success says."""

    code: str
    words: str
    status: int | None


def said_by(error: Exception) -> Said:
    """Read code, words and HTTP status of a `ClientError`."""
    response: dict[str, Any] = getattr(error, "response", None) or {}
    about = response.get("Error") or {}
    status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
    code, words = str(about.get("Code") or "no code"), about.get("Message") or ""
    # An error page of something in between is one long text; its beginning is enough.
    return Said(code, plain(words), status if isinstance(status, int) else None)


def says_missing(said: Said) -> bool:
    """Tell whether an answer says that there is no such cluster or machine.

    The model declares ResourceNotFound; other servers answer ValidationException, in words.
    """
    if said.code in MISSING:
        return True
    return said.code in INVALID and any(word in said.words.lower() for word in _ABSENT)


def plain(text: object) -> str:
    """Make foreign text fit for a sentence: one line, bounded."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return flat if len(flat) <= _WORDS_LIMIT else flat[: _WORDS_LIMIT - 1] + "…"


def was_never_connected(error: Exception) -> bool:
    """Tell whether no connection came about, so that nothing can have reached anybody."""
    from botocore import exceptions as aws

    if isinstance(
        error, aws.EndpointConnectionError | aws.ConnectTimeoutError | aws.ProxyConnectionError
    ):
        return True
    # A failed handshake sends no request; a TLS error while reading comes after one.
    return isinstance(error, aws.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error)


def order_failed(error: Exception, *, sent: bool) -> tuple[Answer, str, str | None]:
    """Give what a failed order means for its machines, in words, and SageMaker's own code.

    `sent` tells whether botocore had begun to send: signing and finding credentials come before.
    """
    from botocore.exceptions import ClientError

    if not sent:
        return Answer.FAILED, f"It was not sent: {before_sending(error)}", None
    if isinstance(error, ClientError):
        return _order_answered(said_by(error))
    if was_never_connected(error):
        return Answer.FAILED, "It was not sent: SageMaker cannot be reached.", None
    why = "No answer came" if _is_timeout(error) else "The connection broke before an answer came"
    return Answer.UNKNOWN, f"{why}: whether the order was taken is not known.", None


def _order_answered(said: Said) -> tuple[Answer, str, str | None]:
    """Tell a no of the service, which changed nothing, from an answer that proves nothing."""
    tail = _tail(said)
    status = said.status or 0
    if said.code in THROTTLED and status == 400:
        # The service's own front door counts requests before it hands them on, and says no with a
        # 400.  A 429 or 503 can come from anything in between, also behind an order that was taken.
        words = f"SageMaker asks for fewer requests: nothing was ordered{tail}."
        return Answer.FAILED, words, said.code
    if not 300 <= status < 500 or status in (408, 429):
        words = f"SageMaker failed with {status or 'an answer that cannot be read'}{tail}"
        return Answer.UNKNOWN, f"{words}: whether the order was taken is not known.", said.code
    if said.code in STALE:
        words = f"SageMaker does not accept our credentials: nothing was ordered{tail}."
        return Answer.FAILED, words, said.code
    return Answer.REFUSED, f"{_refusal(said)}: nothing was ordered{tail}.", said.code


def _tail(said: Said) -> str:
    """Quote what was said, to stand before a full stop."""
    words = said.words.rstrip(".")
    return f" ({said.code}: {words})" if words else f" ({said.code})"


def _refusal(said: Said) -> str:
    if said.code in DENIED or said.status == 403:
        return "SageMaker does not allow us this"
    if says_missing(said):
        return "SageMaker knows no such cluster"
    if said.code == "ConflictException":
        return "SageMaker is at something else with this cluster"
    if said.code in INVALID:
        return "SageMaker finds the order invalid"
    return "SageMaker refused the order"


def before_sending(error: Exception) -> str:
    """Say why a request could not even be made."""
    from botocore import exceptions as aws

    if isinstance(error, aws.NoCredentialsError | aws.PartialCredentialsError):
        return "no AWS credentials are to be found here."
    if isinstance(error, aws.ParamValidationError):
        return f"the request is malformed: {plain(error)}"
    if isinstance(error, ClusterError):
        return error.message
    return f"AWS credentials or the address cannot be had now: {type(error).__name__}."


def reading_failed(error: Exception, limits: tuple[float, float]) -> ClusterError:
    """Turn an exception of a reading into an error with a plain sentence; nothing was changed."""
    from botocore import exceptions as aws

    connect_s, read_s = limits
    if isinstance(error, ClusterError):
        return error
    if isinstance(error, aws.ClientError):
        return _reading_answered(said_by(error))
    if isinstance(error, aws.ConnectTimeoutError):
        return ClusterTimeout(f"No connection to SageMaker within {connect_s:g} s.")
    if _is_timeout(error):
        return ClusterTimeout(f"No answer from SageMaker within {read_s:g} s.")
    if isinstance(error, aws.NoCredentialsError | aws.PartialCredentialsError):
        return ClusterNotConfigured("No AWS credentials are to be found here.")
    if isinstance(error, aws.HTTPClientError | aws.ConnectionError):
        return ClusterUnreachable("SageMaker cannot be reached, or the connection broke.")
    return ClusterFailed(f"SageMaker could not be asked: {type(error).__name__}.")


def _reading_answered(said: Said) -> ClusterError:
    tail = _tail(said)
    if said.code in THROTTLED or said.status == 429:
        return ClusterFailed(f"SageMaker asks for fewer requests{tail}.", status=429)
    if said.status is None or said.status >= 500:
        return ClusterFailed(f"SageMaker failed{tail}.", status=said.status)
    if said.code in STALE:
        words = f"SageMaker does not accept our credentials{tail}."
    elif said.code in DENIED or said.status == 403:
        words = f"SageMaker does not allow us this{tail}."
    elif says_missing(said):
        words = f"SageMaker knows no such cluster{tail}."
    else:
        words = f"SageMaker refused the question{tail}."
    return ClusterRefused(words, status=said.status)


def _is_timeout(error: Exception) -> bool:
    from botocore.exceptions import ReadTimeoutError

    return isinstance(error, ReadTimeoutError | TimeoutError)
