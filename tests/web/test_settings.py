"""Do the settings do what they say, once, with an audit entry, and show no secret twice?"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest

from app.context import Context
from app.store import audit_reading, people, run_settings, tokens
from app.store.ids import show
from app.web.pages.settings import without_password
from tests.web.conftest import ADMIN_TOKEN, Browser


def verbs(context: Context) -> list[str]:
    """List what was done, the oldest first, sign-ins left out."""
    with context.store.reading() as connection:
        entries = audit_reading.page(connection, audit_reading.Filter(), before=None, limit=100)
    return [e.verb for e in reversed(entries) if e.verb != "person.signed_in"]


def message(browser: Browser, path: str = "/settings") -> str:
    """Read the message that the next page shows."""
    found = re.search(r'class="msg" role="status">(.*?)</p>', browser.get(path).text)
    assert found
    return html.unescape(found.group(1))


def test_a_token_is_shown_once_and_works(admin: Browser, context: Context) -> None:
    fields = {"cluster": "alpine", "namespace": "research", "scope": "write", "name": "nightly"}
    answer = admin.post("/settings/tokens", fields)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/settings#tokens"
    page = admin.get("/settings").text
    found = re.search(r'class="secret">(sw_[\w-]{43})<', page)
    assert found
    secret = found.group(1)
    assert secret not in admin.get("/settings").text
    with context.store.reading() as connection:
        token = tokens.by_hash(connection, tokens.hashed(secret))
    assert token is not None
    assert (token.cluster, token.namespace, token.scope) == ("alpine", "research", "write")
    assert verbs(context) == ["token.created"]


def test_revoking_twice_is_harmless(admin: Browser, context: Context) -> None:
    admin.post("/settings/tokens", {"cluster": "alpine"})
    with context.store.reading() as connection:
        (token,) = tokens.everything(connection)
    path = f"/settings/tokens/{show(token.id)}/revoke"
    admin.post(path)
    assert "revoked the token" in message(admin)
    admin.post(path)
    assert "revoked before; nothing was changed" in message(admin)
    assert verbs(context) == ["token.created", "token.revoked"]
    assert admin.post("/settings/tokens/0000000000001/revoke").status_code == 404
    assert admin.post("/settings/tokens/../revoke").status_code in (404, 405)


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "everything"},
        {"namespace": "research"},  # a namespace of which cluster?
        {"cluster": "al\x00pine"},
        {"name": "a\nb"},
        {"name": "n" * 301},
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    admin: Browser, context: Context, fields: dict[str, str]
) -> None:
    assert admin.post("/settings/tokens", fields).status_code == 422
    with context.store.reading() as connection:
        assert tokens.everything(connection) == ()
    assert verbs(context) == []


def test_a_new_person_gets_a_link_that_works(admin: Browser, stranger: Browser) -> None:
    admin.post("/settings/people", {"name": "T. Reyes", "role": "approver"})
    found = re.search(
        r'class="secret">http://witness.test(/sign-in/[\w-]+)<', admin.get("/settings").text
    )
    assert found
    link = found.group(1)
    assert stranger.http.post(link, data={"csrf": stranger.token(link)}).status_code == 303
    assert "T. Reyes" in stranger.get("/settings").text


def test_making_a_person_twice_changes_nothing(admin: Browser, context: Context) -> None:
    admin.post("/settings/people", {"name": "ana", "role": "viewer"})
    admin.post("/settings/people", {"name": "ana", "role": "admin"})
    assert "is there already; nothing was changed" in message(admin)
    with context.store.reading() as connection:
        ana = people.by_name(connection, "ana")
    assert ana is not None
    assert ana.role == "viewer"
    assert verbs(context) == ["person.created"]


def person_path(context: Context, name: str, what: str) -> str:
    """Give the address that changes a person."""
    with context.store.reading() as connection:
        person = people.by_name(connection, name)
    assert person is not None
    return f"/settings/people/{show(person.id)}/{what}"


def test_a_role_changes_at_once(
    admin: Browser, sign_in: Callable[..., Browser], context: Context
) -> None:
    browser = sign_in("viewer", "ana")
    path = person_path(context, "ana", "role")
    assert (
        browser.post("/settings/brake/pull", {"csrf": browser.token("/search")}).status_code == 403
    )
    admin.post(path, {"role": "operator"})
    admin.post(path, {"role": "operator"})
    assert "nothing was changed" in message(admin)
    answer = browser.post("/settings/brake/pull", {"reason": "power work"})
    assert answer.status_code == 303
    assert verbs(context) == ["person.role_changed", "brake.pulled"]
    assert admin.post(path, {"role": "emperor"}).status_code == 422


def test_ending_sessions_and_shutting_out_work_at_once(
    admin: Browser, sign_in: Callable[..., Browser], context: Context
) -> None:
    browser = sign_in("viewer", "ana")
    admin.post(person_path(context, "ana", "end-sessions"))
    assert browser.get("/settings").status_code == 303
    browser = sign_in("viewer", "ana")
    admin.post(person_path(context, "ana", "disable"))
    assert browser.get("/settings").status_code == 303
    admin.post(person_path(context, "ana", "link"))
    assert "disabled; no link was made" in message(admin)
    admin.post(person_path(context, "ana", "enable"))
    assert browser.get("/settings").status_code == 303, "the old session stays ended"
    assert verbs(context) == ["person.sessions_ended", "person.disabled", "person.enabled"]


def test_the_last_administrator_stays(admin: Browser, context: Context) -> None:
    for what, fields in (("disable", {}), ("role", {"role": "viewer"})):
        answer = admin.post(person_path(context, "admin", what), fields)
        assert answer.status_code == 409
        assert "stay administrator" in answer.text
    assert admin.get("/settings").status_code == 200
    assert verbs(context) == []


def test_the_brake_is_pulled_and_released_with_a_reason(admin: Browser, context: Context) -> None:
    def brake() -> tuple[bool, str]:
        with context.store.reading() as connection:
            read = run_settings.brake(connection)
        return read.pulled, read.reason

    assert brake() == (False, "")
    assert admin.post("/settings/brake/pull", {"reason": "  "}).status_code == 422
    admin.post("/settings/brake/pull", {"reason": "power work"})
    admin.post("/settings/brake/pull", {"reason": "again"})
    assert "pulled before; nothing was changed" in message(admin)
    assert brake() == (True, "power work")
    admin.post("/settings/brake/release", {"reason": "done"})
    assert brake() == (False, "done")
    assert verbs(context) == ["brake.pulled", "brake.released"]


def test_an_operator_pulls_the_brake_and_cannot_release_it(
    sign_in: Callable[..., Browser],
) -> None:
    browser = sign_in("operator")
    assert browser.post("/settings/brake/pull", {"reason": "x"}).status_code == 303
    answer = browser.post(
        "/settings/brake/release", {"reason": "x", "csrf": browser.token("/search")}
    )
    assert answer.status_code == 403


def test_a_viewer_sees_the_settings_and_no_button_but_his_own(
    sign_in: Callable[..., Browser],
) -> None:
    page = sign_in("viewer").get("/settings").text
    assert re.findall(r'<form method="post" action="([^"]+)"', page) == ["/sign-out"]
    assert "WITNESS_FOUR_EYES" in page


def test_no_secret_is_on_the_page(admin: Browser) -> None:
    page = admin.get("/settings").text
    assert ADMIN_TOKEN not in page
    assert "set, not shown" in page


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://ana:se:cr@et@db:5432/witness?password=x",
            "postgresql://ana@db:5432/witness",
        ),
        ("sqlite:///var/witness.db", "sqlite:///var/witness.db"),
        ("postgresql+psycopg:///witness", "postgresql+psycopg:///witness"),
    ],
)
def test_a_database_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_hostile_names_stay_text(admin: Browser) -> None:
    hostile = '<script>alert(1)</script>" onload="x'
    admin.post("/settings/people", {"name": hostile, "role": "viewer"})
    for path in ("/settings", "/audit"):
        page = admin.get(path).text
        assert "<script>alert" not in page
        assert 'onload="x' not in page
        assert "&lt;script&gt;" in page
