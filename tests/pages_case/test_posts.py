"""Does every form here work once, refuse GET, need its token and its role, and repeat in vain?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from app.store import audit_reading
from tests.actions.service import Person, Service
from tests.doubles.kubernetes.double import KubernetesDouble


@dataclass(frozen=True)
class Form:
    """One POST: what has to be so before it, where it goes, what it sends."""

    name: str
    path: str  # {proposal} and {case} are filled in
    fields: dict[str, str]
    before: Callable[[Service, dict[str, Any]], None] | None = None
    get_is_a_page: bool = False
    needs_version: bool = False


def _cordoned(service: Service, proposal: dict[str, Any]) -> None:
    assert service.decide(proposal).json()["status"] == "verified"


def _refused(service: Service, proposal: dict[str, Any]) -> None:
    assert service.decide(proposal, "reject").status_code == 200


FORMS = (
    Form("approve", "/proposals/{proposal}/approve", {"reason": "seen"}, needs_version=True),
    Form("reject", "/proposals/{proposal}/reject", {"reason": "not now"}, needs_version=True),
    Form("undo", "/proposals/{proposal}/undo", {"reason": "back"}, _cordoned, get_is_a_page=True),
    Form("ask again", "/proposals/{proposal}/ask-again", {}, _refused),
    Form("note", "/cases/{case}/notes", {"text": "ring and topology look right"}),
    Form(
        "adjudicate",
        "/cases/{case}/adjudicate",
        {"before": "open", "after": "software", "ground": "commit 9f31c2e"},
    ),
)
by_name = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


def _ready(service: Service, form: Form) -> tuple[str, dict[str, Any]]:
    proposal = service.proposal()
    if form.before:
        form.before(service, proposal)
    path = form.path.format(proposal=proposal["id"], case=proposal["case"])
    fields: dict[str, Any] = dict(form.fields)
    if form.needs_version:
        fields["evidence_version"] = proposal["evidence_version"]
    return path, fields


def _entries(service: Service) -> int:
    with service.context.store.reading() as connection:
        return audit_reading.count(connection)


@by_name
def test_it_works_and_a_repeat_does_nothing(
    service: Service, cluster: KubernetesDouble, form: Form
) -> None:
    path, fields = _ready(service, form)
    person = service.person("operator", "alice")
    first = person.press(path, **fields)
    assert 'class="msg" role="status"' in first
    done, sent = _entries(service), len(cluster.calls)
    again = person.send(path, **fields)
    assert again.status_code == 303
    assert (_entries(service), len(cluster.calls)) == (done, sent)


@by_name
def test_it_refuses_get(service: Service, form: Form) -> None:
    path, _ = _ready(service, form)
    before = _entries(service)
    person = service.person("operator")
    signed_in = _entries(service)
    answer = person.http.get(path)
    assert answer.status_code == (200 if form.get_is_a_page else 405)
    assert signed_in == before + 1  # the sign-in itself
    assert _entries(service) == signed_in


@by_name
def test_it_needs_the_token_of_the_form(service: Service, form: Form) -> None:
    path, fields = _ready(service, form)
    person = service.person("operator")
    before = _entries(service)
    assert person.http.post(path, data=fields).status_code == 403
    foreign = person.http.post(
        path,
        data={**fields, "csrf": person.token("/settings")},
        headers={"origin": "https://elsewhere.example"},
    )
    assert foreign.status_code == 403
    assert _entries(service) == before


@by_name
def test_it_needs_the_role(service: Service, form: Form) -> None:
    path, fields = _ready(service, form)
    person: Person = service.person("viewer")
    before = _entries(service)
    answer = person.send(path, **fields)
    assert answer.status_code == 403
    assert "needs the role operator" in answer.text
    assert _entries(service) == before


@by_name
def test_it_sends_a_stranger_to_the_sign_in(service: Service, form: Form) -> None:
    path, fields = _ready(service, form)
    person = service.person("operator")
    token = person.token("/settings")
    person.http.cookies.clear()
    answer = person.http.post(path, data={**fields, "csrf": token})
    assert answer.status_code in (303, 403)
    if answer.status_code == 303:
        assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize(
    "path", ["/cases/zzz", "/cases/0000000000000", "/proposals/x", "/proposals/0000000000000/undo"]
)
def test_what_does_not_exist_is_said(service: Service, path: str) -> None:
    answer = service.person("viewer").http.get(path)
    assert answer.status_code == 404
    assert "There is no" in answer.text
