"""In which Status objects does a Kubernetes API server say no?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Answer:
    """One HTTP answer; `body` is a JSON object or plain text."""

    status: int
    body: Json | str
    headers: dict[str, str] = field(default_factory=dict)


class ApiError(Exception):
    """An answer that is a failure."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(str(answer.body))
        self.answer = answer


@dataclass(frozen=True)
class Cause:
    """One reason for finding an object invalid."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


def status_body(
    code: int, reason: str | None, message: str, details: Mapping[str, Any] | None = None
) -> Json:
    """Build a Status of kind Failure."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body["message"] = message
    if reason is not None:
        body["reason"] = reason
    if details is not None:
        body["details"] = dict(details)
    body["code"] = code
    return body


def failure(
    code: int,
    reason: str,
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ApiError:
    """Build the exception that ends in such an answer."""
    return ApiError(Answer(code, status_body(code, reason, message, details), dict(headers or {})))


def not_found(plural: str, name: str, group: str = "") -> ApiError:
    of = f"{plural}.{group}" if group else plural
    details = {"name": name, **({"group": group} if group else {}), "kind": plural}
    return failure(404, "NotFound", f'{of} "{name}" not found', details)


def no_such_path() -> ApiError:
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, name: str) -> ApiError:
    message = f'{plural} "{name}" already exists'
    return failure(409, "AlreadyExists", message, {"name": name, "kind": plural})


def conflict(plural: str, name: str) -> ApiError:
    message = (
        f'Operation cannot be fulfilled on {plural} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return failure(409, "Conflict", message, {"name": name, "kind": plural})


def wrong_uid(kind: str, name: str, wanted: str, actual: str) -> ApiError:
    message = (
        f'Operation cannot be fulfilled on {kind} "{name}": the UID in the precondition '
        f"({wanted}) does not match the UID in record ({actual}). "
        "The object might have been deleted and then recreated"
    )
    return failure(409, "Conflict", message, {"name": name, "kind": kind})


def invalid(kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """Say which fields are invalid, one or several."""
    parts = [f"{cause.field}: {cause.message}" for cause in causes]
    words = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    details = {
        "name": name,
        "kind": kind,
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes],
    }
    return failure(422, "Invalid", f'{kind} "{name}" is invalid: {words}', details)


def bad_request(message: str) -> ApiError:
    return failure(400, "BadRequest", message)


def rejected_patch() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return failure(422, "Invalid", message, {})


def unsupported_patch() -> ApiError:
    return failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_body() -> ApiError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    return failure(415, "UnsupportedMediaType", message)


def unauthorized() -> ApiError:
    return failure(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, {})


def expired(asked: int, oldest: int) -> ApiError:
    return failure(410, "Expired", f"too old resource version: {asked} ({oldest})")
