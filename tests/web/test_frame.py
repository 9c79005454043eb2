"""Do all answers carry what every answer owes: headers, status, errors in the asker's form?"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable

import httpx2
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from app.web import static
from app.web.rendering import render
from app.web.security import local_path
from tests.web.conftest import HOST, Browser

EVERYWHERE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
}


def policy(answer: httpx2.Response) -> dict[str, str]:
    """Read the content security policy by directive."""
    parts = (
        part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";")
    )
    return {name: value for name, _, value in parts}


def test_a_page_may_load_only_our_own(admin: Browser) -> None:
    for path in ("/settings", "/audit", "/search", "/nothing/here", "/audit?from=x"):
        answer = admin.get(path)
        said = policy(answer)
        assert said["default-src"] == "'none'"
        assert said["style-src"] == "'self'"
        assert said["frame-ancestors"] == "'none'"
        assert said["form-action"] == "'self'"
        assert said["base-uri"] == "'none'"
        assert re.fullmatch(r"'self' 'nonce-[\w-]{20,}'", said["script-src"])
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        for name, value in EVERYWHERE.items():
            assert answer.headers[name] == value
        used = re.findall(r'<script[^>]* nonce="([^"]+)"', answer.text)
        assert used
        assert {f"'self' 'nonce-{nonce}'" for nonce in used} == {said["script-src"]}
        assert "http://" not in re.sub(r'(xmlns="|witness\.test)[^"]*', "", answer.text)
        assert not re.search(r"<[^>]+\s(style|on\w+)=", answer.text)


def test_every_nonce_is_new(admin: Browser) -> None:
    assert len({policy(admin.get("/search"))["script-src"] for _ in range(5)}) == 5


def test_only_a_page_with_charts_may_set_styles(app: FastAPI, admin: Browser) -> None:
    @app.get("/probe-chart")
    def chart(request: Request) -> Response:
        return render(request, "search.html", charts=True, text="", found=None)

    said = policy(admin.get("/probe-chart"))
    assert said["style-src"] == "'self' 'unsafe-inline'"
    assert "unsafe" not in said["script-src"]


def test_answers_that_are_no_pages_may_load_nothing(stranger: Browser) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/api/v1/nothing", "/static/style.css"):
        answer = stranger.get(path)
        assert policy(answer) == {"default-src": "'none'", "frame-ancestors": "'none'"}
        for name, value in EVERYWHERE.items():
            assert answer.headers[name] == value


def test_a_program_gets_errors_as_json(stranger: Browser) -> None:
    answer = stranger.get("/api/v1/nothing/here")
    assert answer.status_code == 404
    assert answer.json() == {
        "error": {
            "code": "not_found",
            "message": "There is nothing at this address.",
            "field": None,
        }
    }


def test_a_wrong_method_names_all_right_ones(admin: Browser) -> None:
    for path, allowed in (
        ("/search", "GET, HEAD"),
        ("/sign-in/some-secret", "GET, HEAD, POST"),
        ("/settings/tokens", "POST"),
    ):
        answer = admin.http.request("DELETE", path)
        assert answer.status_code == 405
        assert answer.headers["allow"] == allowed
        assert "<h1>Method Not Allowed</h1>" in answer.text


def test_head_answers_like_get_without_a_body(admin: Browser) -> None:
    for path in ("/settings", "/healthz", "/static/style.css", "/nothing"):
        head, get = admin.http.head(path), admin.get(path)
        assert head.status_code == get.status_code
        assert head.content == b""
        assert head.headers["content-type"] == get.headers["content-type"]


def test_a_slash_too_many_is_mended_on_this_site(admin: Browser) -> None:
    answer = admin.get("/audit/?verb=token")
    assert answer.status_code == 307
    assert answer.headers["location"] == f"{HOST}/audit?verb=token"
    for path in ("//evil.example/", "//evil.example/%2e%2e"):
        answer = admin.http.get(HOST + path)
        assert answer.headers.get("location", HOST).startswith(HOST)


@pytest.mark.parametrize(
    "path", ["/search?q=%00", "/search?q=" + "%F0%9F%92%A9" * 90, "/search?q=%ff%fe"]
)
def test_odd_searches_are_answered(admin: Browser, path: str) -> None:
    assert admin.get(path).status_code == 200


def test_a_body_too_large_is_refused(admin: Browser) -> None:
    data = {"csrf": admin.token(), "reason": "x" * (1 << 20)}
    answer = admin.http.post("/settings/brake/pull", data=data)
    assert answer.status_code == 413
    assert "larger" in answer.text


def test_a_mistake_of_ours_is_a_plain_500(app: FastAPI) -> None:
    @app.get("/probe-page")
    def page() -> None:
        raise RuntimeError("secret detail")

    @app.get("/api/probe")
    def api() -> None:
        raise RuntimeError("secret detail")

    http = TestClient(app, base_url=HOST, raise_server_exceptions=False)
    for path in ("/probe-page", "/api/probe"):
        answer = http.get(path)
        assert answer.status_code == 500
        assert "secret detail" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert http.get("/api/probe").json()["error"]["code"] == "internal_error"


def test_pages_are_compressed(admin: Browser) -> None:
    answer = admin.get("/settings", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in answer.headers["vary"].lower()


def test_static_files_are_kept_for_a_year_by_content(stranger: Browser) -> None:
    page = stranger.get("/sign-in").text
    for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
        answer = stranger.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        etag = {"if-none-match": answer.headers["etag"]}
        assert stranger.get(address, headers=etag).status_code == 304
    assert stranger.get("/static/style.css").headers["cache-control"] == "no-cache"
    assert stranger.get("/static/style.css?v=old").headers["cache-control"] == "no-cache"
    assert stranger.get("/static/..%2fstatic.py").status_code == 404
    assert stranger.get("/static/nothing.js").status_code == 404


def test_plotly_comes_from_its_package_packed(stranger: Browser) -> None:
    answer = stranger.get(static.address("plotly.js"), headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < 2_000_000
    assert answer.headers["content-type"].startswith("text/javascript")
    found = static.asset("plotly.js")
    assert found is not None
    assert gzip.decompress(found.packed) == found.body == answer.content


def test_metrics_count_requests_by_route(admin: Browser, app: FastAPI) -> None:
    admin.get("/sign-in/one-secret")
    admin.get("/sign-in/another-secret")
    app.state.metrics.document("alarm", "new", 3)
    text = admin.get("/metrics").text
    name = 'witness_request_seconds_count{method="GET",route="/sign-in/{secret}",status="410"} 2.0'
    assert name in text
    assert "one-secret" not in text
    assert 'witness_documents_total{kind="alarm",outcome="new"} 3.0' in text
    assert "witness_queue_documents 0.0" in text
    assert re.search(r"^witness_commits [1-9]", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/audit?verb=token&from=2026-11-03T10:00:00Z#entry-5", True),
        ("/jobs/0123456789abc", True),
        ("", False),
        ("//x", False),
        ("/\\x", False),
        ("http:x", False),
        ("/a\nb", False),
    ],
)
def test_only_paths_of_ours_are_gone_to(target: str, kept: bool) -> None:
    assert local_path(target) == (target if kept else "/")


def test_a_message_is_shown_once_and_escaped(
    admin: Browser, sign_in: Callable[..., Browser]
) -> None:
    admin.post("/settings/people", {"name": "<b>ana</b>", "role": "viewer"})
    assert "&lt;b&gt;ana&lt;/b&gt;, viewer, at" in admin.get("/search").text
    assert 'class="msg"' not in admin.get("/search").text


def test_theme_and_zone_come_from_cookies_and_nothing_else_does(admin: Browser) -> None:
    admin.http.cookies.set("sw_theme", "dark")
    admin.http.cookies.set("sw_zone", "Europe%2FBerlin")
    page = admin.get("/audit").text
    assert '<html lang="en" data-theme="dark">' in page
    assert "Times in Europe/Berlin" in page
    admin.http.cookies.set("sw_theme", '"><script>')
    admin.http.cookies.set("sw_zone", "../../etc/passwd")
    page = admin.get("/audit").text
    assert '<html lang="en">' in page
    assert "Times in UTC" in page
