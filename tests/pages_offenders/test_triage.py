"""Do seven answers lead to a reading, and is it kept on the job with author and time?"""

from __future__ import annotations

import json
import re

import sqlalchemy as sa

from app.store.tables import audit_entries, notes
from tests.cases.conftest import documents
from tests.pages_offenders.house import House
from witness.rules.triage import QUESTIONS, reading


def test_the_questions_stand_there_unanswered(one_house: House) -> None:
    page = one_house.sign_in("viewer").get("/triage").text
    for question in QUESTIONS:
        assert f'name="{question.id}" value="unknown" checked' in page
    assert 'id="reading"' not in page


def test_answers_in_the_address_lead_to_the_reading_of_the_rules(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    page = browser.get("/triage?follows=yes&change=yes&other_nodes=no").text
    said = reading({"follows": "yes", "change": "yes", "other_nodes": "no"})
    assert said.leaning == "strong candidate"
    assert said.summary in page
    assert said.next_step in page
    assert 'name="follows" value="yes" checked' in page
    wrong = browser.get("/triage?follows=perhaps")
    assert wrong.status_code == 400
    assert "follows must be yes, no or unknown" in wrong.text


def test_a_job_is_found_and_carries_the_answers_along(one_house: House) -> None:
    one_house.post(*documents("61", "events.ndjson"))
    browser = one_house.sign_in("operator")
    page = browser.get("/triage?follows=yes&q=moe").text
    found = re.search(r'<a href="(/triage\?[^"]*job=[^"]*)">', page)
    assert found
    page = browser.get(found.group(1).replace("&amp;", "&")).text
    assert 'name="follows" value="yes" checked' in page
    assert "moe-7b" in page
    assert "Keep on the job" in page
    assert browser.get("/triage?job=0000000000000").status_code == 404


def test_a_triage_is_kept_on_the_job_with_author_and_time(house: House) -> None:
    house.post(*documents("61", "events.ndjson"))
    job = house.job_id("moe-7b")
    browser = house.sign_in("operator", "Kim")
    fields = {"job": job, "answers": "follows=yes&change=no", "text": "Loss spikes on node 2."}
    answer = browser.post("/triage", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
    page = browser.get(f"/jobs/{job}").text
    said = reading({"follows": "yes", "change": "no"})
    assert f"{said.summary} Loss spikes on node 2." in page
    assert re.search(r"<b><bdi>Kim</bdi></b>, <time", page)
    assert "Triage kept by Kim at 12:00 UTC" in page
    with house.context.store.reading() as connection:
        row = connection.execute(sa.select(notes)).one()
        verbs = connection.execute(sa.select(audit_entries.c.verb, audit_entries.c.actor)).all()
    assert row.kind == "triage"
    assert json.loads(row.details)["answers"]["follows"] == "yes"
    assert json.loads(row.details)["leaning"] == said.leaning
    assert ("triage.kept", "Kim") in [tuple(one) for one in verbs]
    (note,) = house.read(f"jobs/{job}")["notes"]
    assert (note["author"], note["details"]["next_step"]) == ("Kim", said.next_step)


def test_keeping_needs_answers_a_job_and_the_role(one_house: House) -> None:
    one_house.post(*documents("61", "events.ndjson"))
    job = one_house.job_id("moe-7b")
    viewer, operator = one_house.sign_in("viewer"), one_house.sign_in("operator")
    fields = {"job": job, "answers": "follows=yes"}
    assert viewer.post("/triage", fields).status_code == 403
    assert operator.http.post("/triage", data=fields).status_code == 403
    assert operator.post("/triage", {"job": job, "answers": ""}).status_code == 422
    assert operator.post("/triage", {"job": "", "answers": "follows=yes"}).status_code == 422
    assert operator.post("/triage", {**fields, "job": "0000000000000"}).status_code == 404
    assert "Keep on the job" not in viewer.get(f"/triage?job={job}&follows=yes").text
