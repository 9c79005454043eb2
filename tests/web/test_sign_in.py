"""Does a sign-in link work once, in time, and only for a person who presses the button?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi import FastAPI

from app.context import Context
from app.store import people
from tests.web.conftest import HOST, Browser, Clock


def use(browser: Browser, link: str) -> int:
    """Press the button of a link."""
    return browser.http.post(link, data={"csrf": browser.token(link)}).status_code


def test_opening_a_link_does_not_use_it_up(app: FastAPI, link: str) -> None:
    for _ in range(3):
        page = Browser(app).get(link)
        assert page.status_code == 200
        assert "T. Reyes" in page.text
    assert use(Browser(app), link) == 303


def test_a_link_works_once(app: FastAPI, link: str) -> None:
    first, second = Browser(app), Browser(app)
    token = second.token(link)
    assert use(first, link) == 303
    assert first.get("/settings").status_code == 200
    assert second.http.post(link, data={"csrf": token}).status_code == 410
    assert second.get(link).status_code == 410
    assert second.get("/settings").status_code == 303


def test_a_link_runs_out(app: FastAPI, link: str, clock: Clock) -> None:
    browser = Browser(app)
    token = browser.token(link)
    clock.forward(minutes=31)
    assert browser.http.post(link, data={"csrf": token}).status_code == 410


def test_a_disabled_person_cannot_use_a_link(
    app: FastAPI, link: str, admin: Browser, context: Context
) -> None:
    with context.store.reading() as connection:
        person = people.by_name(connection, "T. Reyes")
    assert person is not None
    browser = Browser(app)
    token = browser.token(link)
    context.store.write(lambda c: people.set_disabled(c, person.id, True))
    assert browser.http.post(link, data={"csrf": token}).status_code == 410


def test_a_link_of_our_own_invention_is_refused(stranger: Browser) -> None:
    assert stranger.get("/sign-in/no-such-secret").status_code == 410


def test_the_secret_is_not_in_the_database(context: Context, link: str) -> None:
    secret = link.rsplit("/", 1)[1]
    dump = context.settings.database_url.removeprefix("sqlite:///")
    for suffix in ("", "-wal"):
        with open(dump + suffix, "rb") as file:  # noqa: PTH123 -- a suffix is no path of its own
            assert secret.encode() not in file.read()


def test_pages_send_strangers_to_the_sign_in_page_and_back(app: FastAPI, link: str) -> None:
    browser = Browser(app)
    answer = browser.get("/search?q=node-7")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fsearch%3Fq%3Dnode-7"
    browser.get(answer.headers["location"])
    answer = browser.http.post(link, data={"csrf": browser.token(link)})
    assert answer.headers["location"] == "/search?q=node-7"


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "\\\\evil.example",
        "/%0d%0aSet-Cookie: a=b\r\nX: y",
        "evil.example",
    ],
)
def test_nobody_is_sent_to_another_site(app: FastAPI, link: str, target: str) -> None:
    browser = Browser(app)
    browser.get("/sign-in", params={"next": target})
    answer = browser.http.post(link, data={"csrf": browser.token(link)})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    # Now signed in: the same page sends on at once.
    assert browser.get("/sign-in", params={"next": target}).headers["location"] == "/"


def test_the_session_cookie_is_kept_from_scripts_and_other_sites(app: FastAPI, link: str) -> None:
    browser = Browser(app)
    answer = browser.http.post(link, data={"csrf": browser.token(link)})
    cookie = next(c for c in answer.headers.get_list("set-cookie") if c.startswith("sw_session="))
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", f"max-age={12 * 3600}"} <= parts


def test_signing_out_ends_the_session_wherever_its_cookie_is(
    app: FastAPI, sign_in: Callable[..., Browser]
) -> None:
    browser = sign_in("viewer")
    stolen = browser.http.cookies["sw_session"]
    assert browser.post("/sign-out").headers["location"] == "/sign-in"
    thief = Browser(app)
    thief.http.cookies.set("sw_session", stolen)
    assert thief.get("/settings").status_code == 303


def test_ended_sessions_are_forgotten_when_they_have_run_out(
    sign_in: Callable[..., Browser], context: Context, clock: Clock
) -> None:
    def remembered() -> int:
        with context.store.reading() as connection:
            rows = connection.exec_driver_sql("SELECT name FROM settings")
            return sum(name.startswith("session.ended:") for (name,) in rows)

    sign_in("viewer").post("/sign-out")
    sign_in("viewer").post("/sign-out")
    assert remembered() == 2
    clock.forward(hours=13)
    sign_in("viewer").post("/sign-out")
    assert remembered() == 1


def test_signing_out_twice_is_harmless(sign_in: Callable[..., Browser]) -> None:
    browser = sign_in("viewer")
    fields = {"csrf": browser.token()}
    assert browser.http.post("/sign-out", data=fields).status_code == 303
    # The form token belonged to the session that has ended.
    assert browser.http.post("/sign-out", data=fields).status_code == 403


def test_other_sessions_of_a_person_go_on_after_a_sign_out(
    sign_in: Callable[..., Browser],
) -> None:
    at_home, at_work = sign_in("viewer", "ana"), sign_in("viewer", "ana")
    at_home.post("/sign-out")
    assert at_work.get("/settings").status_code == 200


def test_a_forged_or_foreign_cookie_is_nobody(
    app: FastAPI, sign_in: Callable[..., Browser]
) -> None:
    good = sign_in("admin").http.cookies["sw_session"]
    for forged in (good[:-2], "x" + good, "a.b.c", "", good.replace(".", "", 1)):
        browser = Browser(app)
        browser.http.cookies.set("sw_session", forged)
        assert browser.get("/settings").status_code == 303


def test_sign_in_from_another_site_is_refused(app: FastAPI, link: str) -> None:
    browser = Browser(app)
    fields = {"csrf": browser.token(link)}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert browser.http.post(link, data=fields, headers=headers).status_code == 403
    assert browser.http.post(link, data=fields, headers={"origin": HOST}).status_code == 303
