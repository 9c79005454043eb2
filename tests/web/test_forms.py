"""Does every POST keep what every POST owes: method, form token, origin, role?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.routing import APIRoute

from app.config import Settings
from app.context import Context
from app.main import ROUTERS, create_app
from app.web.security import own_form
from tests.web.conftest import Browser

SETTINGS_POSTS = [
    ("/settings/tokens", "admin"),
    ("/settings/tokens/0000000000001/revoke", "admin"),
    ("/settings/people", "admin"),
    ("/settings/people/0000000000001/link", "admin"),
    ("/settings/people/0000000000001/role", "admin"),
    ("/settings/people/0000000000001/end-sessions", "admin"),
    ("/settings/people/0000000000001/disable", "admin"),
    ("/settings/people/0000000000001/enable", "admin"),
    ("/settings/brake/pull", "operator"),
    ("/settings/brake/release", "admin"),
]


def page_routes() -> list[APIRoute]:
    """List the routes of pages, those under /api left out."""
    return [
        route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and not route.path.startswith("/api/")
    ]


def calls(dependant: Any) -> Iterator[Any]:
    """Go through everything a route depends on."""
    for inner in dependant.dependencies:
        yield inner.call
        yield from calls(inner)


def test_every_form_of_every_page_checks_where_it_came_from() -> None:
    posts = [route for route in page_routes() if (route.methods or set()) - {"GET", "HEAD"}]
    assert len(posts) >= len(SETTINGS_POSTS)
    assert [r.path for r in posts if own_form not in calls(r.dependant)] == []


def test_every_page_but_a_few_needs_a_role() -> None:
    open_to_all = {
        route.path
        for route in page_routes()
        if not any(hasattr(call, "needs_role") for call in calls(route.dependant))
    }
    assert open_to_all == {
        "/static/{name}",
        "/healthz",
        "/readyz",
        "/metrics",
        "/sign-in",
        "/sign-in/{secret}",
        "/sign-out",
    }


def test_get_is_refused(admin: Browser) -> None:
    for path, _ in SETTINGS_POSTS:
        answer = admin.get(path)
        assert (path, answer.status_code) == (path, 405)
        assert answer.headers["allow"] == "POST"


def test_the_form_token_is_needed(admin: Browser, sign_in: Callable[..., Browser]) -> None:
    of_another = sign_in("admin", "somebody else").token()
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"csrf": ""},
        {"csrf": "0" * 64},
        {"csrf": "ä"},
        {"csrf": of_another},
    )
    for path, _ in SETTINGS_POSTS:
        for fields in wrong:
            answer = admin.http.post(path, data={"reason": "x", **fields})
            assert (path, fields, answer.status_code) == (path, fields, 403)
            assert "Nothing was changed" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://witness.test.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(admin: Browser, headers: dict[str, str]) -> None:
    for path, _ in SETTINGS_POSTS:
        answer = admin.post(path, {"reason": "x"}, headers=headers)
        assert (path, answer.status_code) == (path, 403)
        assert "another site" in answer.text


def test_the_role_is_needed(sign_in: Callable[..., Browser]) -> None:
    below = {"operator": sign_in("viewer"), "admin": sign_in("approver")}
    tokens = {role: browser.token("/search") for role, browser in below.items()}
    for path, role in SETTINGS_POSTS:
        fields = {"csrf": tokens[role], "reason": "x", "role": "admin"}
        answer = below[role].http.post(path, data=fields)
        assert (path, answer.status_code) == (path, 403)
        assert f"role {role}" in answer.text


def test_strangers_are_sent_to_sign_in(stranger: Browser, link: str) -> None:
    token = stranger.token(link)
    for path, _ in SETTINGS_POSTS:
        answer = stranger.http.post(path, data={"reason": "x", "csrf": token})
        assert (path, answer.status_code) == (path, 303)
        assert answer.headers["location"].startswith("/sign-in?next=")


def test_a_form_behind_a_proxy_may_name_the_public_address(
    settings: Settings, context: Context, sign_in: Callable[..., Browser]
) -> None:
    public = settings.model_copy(update={"public_url": "https://witness.example"})
    app = create_app(public, replace(context, settings=public))
    browser = Browser(app)
    browser.http.cookies = sign_in("admin").http.cookies
    headers = {"origin": public.public_url}
    assert browser.post("/settings/brake/pull", {"reason": "x"}, headers=headers).status_code == 303
