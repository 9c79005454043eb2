"""Does the audit chain show every change to it, in both databases, and through page and export?"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from app.context import Context
from app.store import audit, audit_reading, ids
from app.store.audit_reading import Filter
from app.store.store import Store
from app.store.tables import audit_entries
from tests.web.conftest import ADMIN_TOKEN, Browser

AT = datetime(2026, 11, 3, 15, 12, 14, 123456, tzinfo=UTC)


@pytest.fixture
def both(migrated_url: str) -> Iterator[Store]:
    """Give a store on each kind of database."""
    store = Store.open(migrated_url, lambda _c, _d: [])
    yield store
    store.close()


def fill(store: Store, number: int = 5) -> list[int]:
    """Write some entries, each in a transaction of its own."""
    return [store.write(partial(_one, n)) for n in range(number)]


def _one(n: int, connection: sa.Connection) -> int:
    return audit.append(
        connection,
        f"person {n % 2}",
        ("proposal.approved", "token.created")[n % 2],
        f"Entry \u202e{n}\x00\ud800 <b>",
        at=AT + timedelta(seconds=n),
        case_id=ids.derive("case", n),
        details={"n": n, "big": 2**60, "share": 0.1, "text": "ä"},
    )


def verify(store: Store) -> audit.Verification:
    """Walk the chain."""
    with store.reading() as connection:
        return audit.verify(connection)


def test_an_untouched_chain_verifies(both: Store) -> None:
    assert verify(both) == audit.Verification(0, None, None, audit.BEFORE_THE_FIRST)
    fill(both)
    found = verify(both)
    assert (found.entries, found.first_bad) == (5, None)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("summary", "Nothing happened."),
        ("actor", "somebody else"),
        ("verb", "proposal.rejected"),
        ("at", AT - timedelta(days=1)),
        ("case_id", 1),
        ("proposal_id", 1),
        ("node_id", 1),
        ("job_id", 1),
        ("details", "{}"),
        ("details", "no JSON"),
        ("hash", "0" * 64),
        ("previous_hash", "0" * 64),
    ],
)
def test_a_changed_entry_is_found(both: Store, column: str, value: object) -> None:
    third = fill(both)[2]
    both.write(
        lambda c: c.execute(
            audit_entries.update().where(audit_entries.c.id == third).values({column: value})
        )
    )
    found = verify(both)
    assert (found.first_bad, found.entries) == (third, 3)


def test_a_removed_entry_is_found(both: Store) -> None:
    written = fill(both)
    both.write(lambda c: c.execute(audit_entries.delete().where(audit_entries.c.id == written[1])))
    found = verify(both)
    assert found.first_bad == written[2]
    assert "removed" in str(found.why)


def test_two_exchanged_entries_are_found(both: Store) -> None:
    written = fill(both)

    def exchange(c: sa.Connection) -> None:
        for old, new in ((written[1], 10**6), (written[2], written[1]), (10**6, written[2])):
            c.execute(audit_entries.update().where(audit_entries.c.id == old).values(id=new))

    both.write(exchange)
    assert verify(both).first_bad == written[1]


def test_two_processes_make_one_chain(migrated_url: str) -> None:
    # Two writers on one database stand for two processes.
    stores = [Store.open(migrated_url, lambda _c, _d: []) for _ in range(2)]
    threads = [threading.Thread(target=fill, args=(store, 20)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = verify(stores[0])
    for store in stores:
        store.close()
    assert (found.entries, found.first_bad) == (40, None)


def test_an_entry_of_a_failed_change_is_not_kept(both: Store) -> None:
    def fail(c: sa.Connection) -> None:
        audit.append(c, "ana", "token.created", "It did not happen.", at=AT)
        raise LookupError

    with pytest.raises(LookupError):
        both.write(fail)
    assert verify(both).entries == 0


def test_pages_of_entries_follow_each_other(both: Store) -> None:
    written = fill(both, 7)
    with both.reading() as connection:
        first = audit_reading.page(connection, Filter(), before=None, limit=3)
        second = audit_reading.page(connection, Filter(), before=first[-1].id, limit=10)
    assert [entry.id for entry in first + second] == written[::-1]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(actor="person 1"), [1, 3]),
        (Filter(verb="token"), [1, 3]),
        (Filter(verb="token.created"), [1, 3]),
        (Filter(verb="tok"), []),
        (Filter(text="<B>"), [0, 1, 2, 3, 4]),
        (Filter(text="100%"), []),
        (Filter(since=AT + timedelta(seconds=2), until=AT + timedelta(seconds=4)), [2, 3]),
        (Filter(case_id=ids.derive("case", 4)), [4]),
    ],
)
def test_filters(both: Store, wanted: Filter, found: list[int]) -> None:
    fill(both)
    with both.reading() as connection:
        entries = list(audit_reading.walk(connection, wanted))
    assert [entry.details["n"] for entry in entries] == found


def test_the_page_says_that_the_chain_holds_and_where_it_breaks(
    admin: Browser, context: Context
) -> None:
    written = fill(context.store, 3)
    page = admin.get("/audit?verify=now").text
    assert "Chain verified" in page
    assert "4 entries" in page
    context.store.write(
        lambda c: c.execute(
            audit_entries.update().where(audit_entries.c.id == written[1]).values(actor="nobody")
        )
    )
    page = admin.get("/audit?verify=now").text
    assert f"Chain broken at entry {written[1]}" in page
    assert "Chain verified" not in page


def test_an_exported_chain_can_be_verified_without_this_program(
    admin: Browser, context: Context
) -> None:
    fill(context.store)
    answer = admin.get("/audit?format=ndjson")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert len(lines) == 6  # and the sign-in
    previous = "0" * 64
    for line in lines:
        del line["id"]
        stated = line.pop("hash")
        assert line["previous_hash"] == previous
        text = json.dumps(line, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() == stated
        previous = stated


def test_programs_read_the_chain_page_by_page(admin: Browser, context: Context) -> None:
    written = fill(context.store)
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    first = admin.get("/api/v1/audit?limit=2&q=entry", headers=headers).json()
    assert [one["id"] for one in first["items"]] == [str(n) for n in written[:2:-1]]
    query = {"limit": "2", "q": "entry", "cursor": first["next"]}
    second = admin.get("/api/v1/audit", params=query, headers=headers).json()
    assert second["items"][0]["hash"] == first["items"][-1]["previous_hash"]
    assert admin.get("/api/v1/audit?node=x", headers=headers).status_code == 400


def test_a_token_of_one_cluster_does_not_read_the_whole_chain(
    admin: Browser, stranger: Browser
) -> None:
    admin.post("/settings/tokens", {"cluster": "alpine", "scope": "read"})
    secret = admin.get("/settings").text.split('class="secret">')[1].split("<")[0]
    headers = {"Authorization": f"Bearer {secret}"}
    assert stranger.get("/api/v1/audit", headers=headers).status_code == 403


def test_the_csv_runs_nothing(admin: Browser, context: Context) -> None:
    context.store.write(lambda c: audit.append(c, "=cmd()", "x.y", "-1+1", at=AT))
    answer = admin.get("/audit?format=csv&verb=x")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert row["actor"] == "'=cmd()"
    assert row["summary"] == "'-1+1"
    assert "attachment" in answer.headers["content-disposition"]


def test_filters_stand_in_the_address_of_the_next_page(admin: Browser, context: Context) -> None:
    fill(context.store, 250)
    page = admin.get("/audit?verb=token").text
    assert 'value="token"' in page
    assert page.count("data-row") == 100
    assert "verb=token&amp;before=" in page
    second = admin.get("/audit?verb=token&before=" + page.split("before=")[1].split('"')[0]).text
    assert second.count("data-row") == 25


@pytest.mark.parametrize(
    "query",
    ["from=yesterday", "case=1", "before=x", "before=-1", "format=xml", "q=%00", "to=" + "9" * 500],
)
def test_a_filter_that_cannot_be_read_is_said(admin: Browser, query: str) -> None:
    assert admin.get("/audit?" + query).status_code == 400
