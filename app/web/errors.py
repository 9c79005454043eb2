"""What does a person or a program see when something cannot be done?"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from app.errors import Problem, unavailable
from app.store.database import StoreUnavailable
from app.store.writer import QueueFull
from app.web.rendering import render
from app.web.security import HEADERS, SignInNeeded

log = logging.getLogger(__name__)

_CODES = {
    400: "bad_request",
    401: "not_signed_in",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many",
    500: "internal_error",
    503: "unavailable",
}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def is_for_program(request: Request) -> bool:
    """Tell whether the asker wants JSON: everything under /api, and the health addresses."""
    return request.url.path.startswith(("/api/", "/healthz", "/readyz", "/metrics"))


def answer(request: Request, problem: Problem) -> Response:
    """Say a problem as JSON to a program and as a page to a person."""
    if is_for_program(request):
        return JSONResponse(problem.as_json(), problem.status, problem.headers)
    if request.url.path.startswith("/fragment/"):
        # The page that polls keeps what it shows and says that it is not live.
        return Response(problem.message, problem.status, problem.headers, "text/plain")
    try:
        phrase = HTTPStatus(problem.status).phrase
    except ValueError:
        phrase = "Error"
    return render(
        request,
        "error.html",
        status=problem.status,
        headers=problem.headers,
        problem=problem,
        phrase=phrase,
    )


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(StoreUnavailable, _unavailable)
    app.add_exception_handler(QueueFull, _queue_full)
    app.add_exception_handler(SignInNeeded, _sign_in)
    app.add_exception_handler(Exception, _internal)


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return answer(request, error)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    message = error.detail
    if error.status_code == 405:
        allowed = allowed_methods(request)
        headers["Allow"] = ", ".join(allowed)
        message = f"{request.method} is not possible here, only {' and '.join(allowed)}."
    elif error.status_code == 404:
        message = "There is nothing at this address."
    code = _CODES.get(error.status_code, "error")
    return answer(request, Problem(error.status_code, code, message, headers=headers))


def too_large(request: Request) -> Response:
    """Say that a body is over its limit, in place of the framework's bare words."""
    message = "The body is larger than this address takes."
    return answer(request, Problem(413, "too_large", message))


def allowed_methods(request: Request) -> list[str]:
    """List what all routes of this address allow together; the framework names only the first's."""
    found = []
    for method in _METHODS:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0].name == "FULL" for route in request.app.router.routes):
            found.append(method)
    if "GET" in found:
        found.insert(1, "HEAD")
    return found


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = dict(error.errors()[0]) if error.errors() else {}
    location = [str(part) for part in first.get("loc", ())]
    field = ".".join(location[1:]) if len(location) > 1 else None
    what = str(first.get("msg", "not understood"))
    message = f"{field or 'The request'}: {what}."
    return answer(request, Problem(422, "invalid", message, field=field))


def _unavailable(request: Request, error: Exception) -> Response:
    return answer(request, unavailable(str(error)))


def _queue_full(request: Request, error: Exception) -> Response:
    problem = Problem(
        429,
        "too_many",
        f"{error}. Nothing was kept; send it again later.",
        headers={"Retry-After": "2"},
    )
    return answer(request, problem)


def _sign_in(request: Request, error: Exception) -> Response:
    assert isinstance(error, SignInNeeded)
    if is_for_program(request) or request.url.path.startswith("/fragment/"):
        problem = Problem(
            401, "not_signed_in", "Sign in first.", headers={"WWW-Authenticate": "Bearer"}
        )
        return answer(request, problem)
    return RedirectResponse("/sign-in?next=" + quote(error.next_path, safe=""), 303)


def _internal(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    message = "The service made a mistake; its log says more. Nothing was acknowledged."
    problem = Problem(500, "internal_error", message)
    try:
        response = answer(request, problem)
    except Exception:
        log.exception("the page that says so failed as well")
        response = Response(message, 500, media_type="text/plain")
    # This answer is made outside of the middleware that adds them to all others.
    response.headers.update({**dict(HEADERS), "Cache-Control": "no-store"})
    return response
