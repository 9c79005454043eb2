"""What does a failed exchange with a cluster mean, and may it have changed anything?"""

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.cluster.errors import (
    ClusterConflict,
    ClusterError,
    ClusterFailed,
    ClusterRefused,
    ClusterTimeout,
    ClusterUnreachable,
    NodeGone,
)

if TYPE_CHECKING:
    from app.cluster.api import Limits

_SENTENCES = {
    400: "The cluster did not understand the request.",
    401: "The cluster does not accept our credentials: the token is missing, wrong or expired.",
    403: "The cluster knows us but does not allow this.",
    404: "The cluster knows no such object.",
    405: "The cluster does not offer this.",
    409: "The object was changed by somebody else in between.",
    413: "The request is too large for the cluster.",
    415: "The cluster does not take this kind of patch.",
    422: "The cluster finds the request invalid.",
    429: "The cluster is too busy and asks us to wait.",
}


def error_of_status(
    status: int,
    document: Mapping[str, Any] | None,
    text: bytes,
    headers: Mapping[str, str],
    *,
    changing: bool,
) -> ClusterError:
    """Turn an answer that is no success into an error with a plain sentence."""
    said = _said(document, text)
    wait = _retry_after(headers)
    if status >= 500:
        return ClusterFailed(
            f"The cluster failed with {status}{said}.",
            status=status,
            retry_after=wait,
            maybe_applied=changing,
        )
    if 300 <= status < 400:
        return ClusterRefused(
            f"The cluster's address answers with a redirect ({status}): it is no API server.",
            status=status,
        )
    sentence = _SENTENCES.get(status, f"The cluster answered {status}.").rstrip(".")
    pause = f" It asks for a pause of {wait:g} s." if wait is not None else ""
    kind = {404: NodeGone, 409: ClusterConflict}.get(status, ClusterRefused)
    if kind is NodeGone and not _of_node(document):
        kind = ClusterRefused
    return kind(f"{sentence} ({status}{said}).{pause}", status=status, retry_after=wait)


def _of_node(document: Mapping[str, Any] | None) -> bool:
    """Tell a missing node from a path that this server does not serve at all."""
    details = (document or {}).get("details")
    if isinstance(details, Mapping) and details.get("kind") not in (None, "nodes", "Node"):
        return False
    return (document or {}).get("reason") == "NotFound"


def _said(document: Mapping[str, Any] | None, text: bytes) -> str:
    """Quote what the server itself says, in one bounded line."""
    words = str((document or {}).get("message") or "")
    if not words and document is None:
        words = text[:200].decode("utf-8", "replace")
    flat = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return f": {flat[:300]}" if flat else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def error_of_transport(error: Exception, limits: "Limits", *, changing: bool) -> ClusterError:
    """Turn an exception of the client or of urllib3 into an error with a plain sentence."""
    from urllib3 import exceptions as http

    if isinstance(error, ClusterError):
        return error
    # A refused connection is a kind of connect timeout to urllib3, so it is asked for first.
    if isinstance(error, http.NewConnectionError | http.LocationValueError | http.ProxyError):
        return ClusterUnreachable(f"The cluster cannot be reached: {_short(error)}")
    if isinstance(error, http.ConnectTimeoutError):
        return ClusterTimeout(f"No connection to the cluster within {limits.connect_s:g} s.")
    if _is_certificate(error):
        return ClusterUnreachable(f"The cluster's certificate is not trusted: {_short(error)}")
    if isinstance(error, http.TimeoutError):
        return ClusterTimeout(
            f"No answer from the cluster within {limits.read_s:g} s.", maybe_applied=changing
        )
    if isinstance(error, http.HTTPError | OSError):
        return ClusterUnreachable(
            "The connection to the cluster broke before the answer came.",
            maybe_applied=changing,
        )
    # Anything else comes from making the request (a token plugin, an odd kubeconfig) or from the
    # client itself; as it may also come late, it counts as sent.
    return ClusterFailed(f"The Kubernetes client failed: {_short(error)}", maybe_applied=changing)


def _is_certificate(error: Exception) -> bool:
    """Tell a failed handshake; the client wraps it, so the words must do where the chain ends."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return True
        seen = seen.__cause__ or seen.__context__
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def _short(error: Exception) -> str:
    flat = " ".join(str(error).split())
    # urllib3 puts the object's address in front, which says nothing to a reader.
    flat = flat.split(">: ", 1)[-1] if ">: " in flat else flat
    return (flat[:200] or type(error).__name__).rstrip(".") + "."
