"""Do people, tokens, settings and search behave alike in both databases?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.store import ids, people, run_settings, search, tokens, waiting
from app.store.connection import Connection
from app.store.intake.job_rows import searchable
from app.store.people import LastAdmin
from app.store.store import Store
from app.store.tables import cases, gpus, jobs, nodes, proposals

AT = datetime(2026, 11, 3, 15, 12, tzinfo=UTC)
UUID = "GPU-e2890f29-b3c7-2963-7634-9739d01e820b"


@pytest.fixture
def store(migrated_url: str) -> Iterator[Store]:
    """Give a store on each kind of database."""
    store = Store.open(migrated_url, lambda connection, documents: [])
    yield store
    store.close()


def test_a_link_is_used_once_and_in_time(store: Store) -> None:
    ana, new = store.write(lambda c: people.ensure(c, "ana", "viewer", AT))
    assert new
    assert not store.write(lambda c: people.ensure(c, "ana", "admin", AT))[1]
    secret = store.write(lambda c: people.make_link(c, ana.id, AT, 30))
    late = AT + timedelta(minutes=30)
    assert store.write(lambda c: people.use_link(c, secret, late)) is None
    used = store.write(lambda c: people.use_link(c, secret, AT + timedelta(minutes=29)))
    assert used is not None
    assert used.last_seen_at == AT + timedelta(minutes=29)
    assert store.write(lambda c: people.use_link(c, secret, AT)) is None


def test_ending_sessions_spoils_links_not_used(store: Store) -> None:
    ana, _ = store.write(lambda c: people.ensure(c, "ana", "viewer", AT))
    secret = store.write(lambda c: people.make_link(c, ana.id, AT, 30))
    store.write(lambda c: people.end_sessions(c, ana.id))
    assert store.write(lambda c: people.use_link(c, secret, AT)) is None
    with store.reading() as connection:
        again = people.by_name(connection, "ana")
    assert again is not None
    assert again.session_epoch == ana.session_epoch + 1


def test_the_last_administrator_cannot_leave(store: Store) -> None:
    ana, _ = store.write(lambda c: people.ensure(c, "ana", "admin", AT))
    with pytest.raises(LastAdmin):
        store.write(lambda c: people.set_disabled(c, ana.id, True))
    with pytest.raises(LastAdmin):
        store.write(lambda c: people.set_role(c, ana.id, "viewer"))
    store.write(lambda c: people.ensure(c, "bo", "admin", AT))
    store.write(lambda c: people.set_role(c, ana.id, "viewer"))


@pytest.mark.parametrize(
    ("role", "reaches"),
    [("viewer", 1), ("operator", 2), ("approver", 3), ("admin", 4)],
)
def test_a_role_may_what_those_below_may(role: str, reaches: int) -> None:
    person = people.Person(1, "ana", role, 1, AT, None, disabled=False)
    assert [person.may(one) for one in people.ROLES] == [n < reaches for n in range(4)]
    shut_out = people.Person(1, "ana", role, 1, AT, None, disabled=True)
    assert not any(shut_out.may(one) for one in people.ROLES)


def test_working_tokens_are_listed_first(store: Store) -> None:
    def make(number: int) -> tokens.Token:
        at = AT + timedelta(minutes=number)
        return store.write(
            lambda c: tokens.create(
                c,
                name=f"token {number}",
                cluster=None,
                namespace=None,
                scope="read",
                by="ana",
                at=at,
            )
        )[0]

    made = [make(number) for number in range(3)]
    assert store.write(lambda c: tokens.revoke(c, made[2].id, AT))
    assert not store.write(lambda c: tokens.revoke(c, made[2].id, AT))
    with store.reading() as connection:
        listed = tokens.everything(connection)
    assert [token.name for token in listed] == ["token 1", "token 0", "token 2"]


def test_the_session_key_is_made_once(store: Store) -> None:
    first = store.write(lambda c: run_settings.ensure_session_key(c, AT))
    assert store.write(lambda c: run_settings.ensure_session_key(c, AT)) == first
    assert len(first) >= 43


def fill(store: Store) -> None:
    """Put a few machines, GPUs and jobs in."""
    seen = {"first_seen_at": AT, "last_seen_at": AT}

    def work(c: Connection) -> None:
        for name, instance in (
            ("hyperpod-i-0c0ffee0000000002", "i-0c0ffee0000000002"),
            ("Node_7", None),
            ("node%7", None),
        ):
            row = {"cluster": "alpine", "name": name, "instance_id": instance, **seen}
            row["search"] = searchable(name)
            c.execute(nodes.insert().values(id=ids.derive("node", name), **row))
        c.execute(gpus.insert().values(id=ids.derive("gpu", UUID), uuid=UUID, form="full", **seen))
        for name in ("tiny-lm", "tiny-lm-2", "other"):
            row = {"cluster": "alpine", "namespace": "research", "name": name, **seen}
            row["search"] = searchable(name)
            c.execute(jobs.insert().values(id=ids.derive("job", name), **row))

    store.write(work)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hyperpod-i-0c", ["hyperpod-i-0c0ffee0000000002"]),
        ("i-0c0ffee0000000002", ["hyperpod-i-0c0ffee0000000002"]),
        ("I-0C0FFEE", ["hyperpod-i-0c0ffee0000000002"]),
        ("Node_7", ["Node_7"]),
        ("NODE_7", ["Node_7"]),
        ("Node", ["Node_7", "node%7"]),
        ("node%", ["node%7"]),
        ("TINY-lm-", ["tiny-lm-2"]),
        ("%", []),
        ("_", []),
        ("GPU-e2890f29", [UUID]),
        ("e2890f29-B3C7", [UUID]),
        ("gpu-E289", [UUID]),
        ("tiny-lm", ["tiny-lm", "tiny-lm-2"]),
        ("tiny-lm-3", []),
    ],
)
def test_names_are_found_by_how_they_begin(store: Store, text: str, found: list[str]) -> None:
    fill(store)
    with store.reading() as connection:
        named = [hit.name for hit in search.nodes_like(connection, text, 9)]
        named += [hit.uuid for hit in search.gpus_like(connection, text, 9)]
        named += [hit.name for hit in search.jobs_like(connection, text, 9)]
    assert named == found


def test_a_search_uses_the_indexes(migrated_sqlite_url: str) -> None:
    store = Store.open(migrated_sqlite_url, lambda connection, documents: [])
    asked: list[tuple[str, Any]] = []
    sa.event.listen(
        store.engine, "before_cursor_execute", lambda *call: asked.append((call[2], call[3]))
    )
    with store.reading() as connection:
        for find in (search.nodes_like, search.gpus_like, search.jobs_like):
            find(connection, "tiny", 9)
        statements = [(s, p) for s, p in asked if s.lstrip().startswith("SELECT")]
        for statement, parameters in statements:
            plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters)
            assert not [row for row in plan if "SCAN" in str(row)], statement
    store.close()
    assert len(statements) == 3


def test_what_waits_is_counted(store: Store) -> None:
    with store.reading() as connection:
        assert waiting.read(connection) == waiting.Waiting(0, 0)
    common = {
        "subject": "gpu", "ordinal": 1, "cluster": "alpine", "job_id": 1, "opened_at": AT,
        "first_alarm_at": AT, "last_alarm_at": AT, "last_alarm_id": 1, "alarms": 1,
        "evidence_version": 1, "standing": "suspect", "headline": "x", "advice": "x",
        "urgency": 1,
    }  # fmt: skip
    asked = {
        "case_id": 1, "ordinal": 1, "cluster": "alpine", "evidence_version": 1,
        "table_version": "7", "why": "x", "recommended_by": "R1", "created_at": AT,
    }  # fmt: skip

    def work(c: Connection) -> None:
        for number, status in ((1, "open"), (2, "open"), (3, "closed")):
            row = {**common, "id": number, "subject_id": number, "status": status}
            c.execute(cases.insert().values(row))
        for number, (action, status, blocked) in enumerate(
            (
                ("cordon", "proposed", None),
                ("replace", "proposed", "the node is not known"),
                ("uncordon", "rejected", None),
            )
        ):
            row = {**asked, "id": number, "action": action, "status": status, "blocked": blocked}
            c.execute(proposals.insert().values(row))

    store.write(work)
    with store.reading() as connection:
        assert waiting.read(connection) == waiting.Waiting(2, 1)
