"""Can people and programs see the limits, decide many at once, and forbid a node?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.config import Settings
from app.main import make_context
from tests.actions.fleet import node
from tests.actions.service import ADMIN_TOKEN, BEARER, Person, Service
from tests.approvals.house import named, node_name, placed
from tests.doubles.kubernetes.double import KubernetesDouble

NODES = 6


@pytest.fixture
def fleet() -> Iterator[KubernetesDouble]:
    """Run a cluster of six nodes, of which one is the control plane."""
    names = [node_name(number) for number in range(NODES)]
    nodes = [node(name) for name in names[:-1]]
    nodes.append(node(names[-1], labels={"node-role.kubernetes.io/control-plane": ""}))
    with KubernetesDouble({"nodes": nodes}) as double:
        yield double


@pytest.fixture
def service(fleet: KubernetesDouble, migrated_sqlite_url: str, tmp_path: Path) -> Iterator[Service]:
    """Serve a job on six nodes of which five are suspect."""
    clusters = {"alpine": {"kubeconfig": str(fleet.kubeconfig(tmp_path / "config"))}}
    settings = Settings(
        database_url=migrated_sqlite_url, data_dir=tmp_path, admin_token=ADMIN_TOKEN,
        clusters=clusters, cluster_timeout_s=2.0,
    )  # fmt: skip
    made = Service(make_context(settings))
    made.post(placed(12), *(named([number], 30 + number) for number in range(5)))
    yield made
    made.close()


def ask(service: Service, method: str, path: str, **body: Any) -> httpx2.Response:
    """Ask as the administrator's program."""
    url = f"{service.url}/api/v1{path}"
    return httpx2.request(method, url, json=body or None, headers=BEARER, timeout=30)


def test_the_limits_are_changed_on_their_page(service: Service) -> None:
    admin, viewer = service.person("admin"), service.person("viewer")
    page = admin.get("/settings/policy")
    assert "assumed" in page
    assert "Put these limits in force" not in viewer.get("/settings/policy")
    assert viewer.send("/settings/policy", max_nodes="9").status_code == 403
    fields = {"seen": "assumed", "four_eyes": "on", "max_share": "12.5 %", "max_nodes": "9"}
    bad = admin.send("/settings/policy", **{**fields, "max_per_hour": "many"})
    assert bad.status_code == 422
    assert "“many” is not a number." in bad.text
    assert 'value="12.5 %"' in bad.text, "what was typed stands there"
    page = admin.press("/settings/policy", **fields)
    assert "put version 1 of the limits in force" in page
    assert "32 nodes → 9 nodes" in page
    page = admin.press("/settings/policy", **{**fields, "max_nodes": "10"})
    assert "version assumed then, version 1 now" in page
    read = ask(service, "GET", "/policy").json()
    values = {one["name"]: one["value"] for one in read["limits"]}
    assert (read["version"], read["assumed"], values["max_share"]) == ("1", False, 0.125)


def test_many_cordons_are_looked_at_and_approved_together(
    service: Service, fleet: KubernetesDouble
) -> None:
    rows = service.proposals(status="proposed")
    held = next(one for one in rows if one["target"]["node"] == node_name(2))
    veto = {"cluster": "alpine", "node": node_name(2), "reason": "bring-up"}
    assert ask(service, "POST", "/vetoes", **veto).status_code == 201
    operator = service.person("operator")
    assert "Look at the chosen ones together" in operator.get("/approvals")
    page = operator.get("/approvals/batch?" + "&".join(f"m={one['id']}" for one in rows))
    assert "4 would go through, 1 would be held back" in page
    assert "forbids to touch" in page
    assert fleet.changes("PATCH") == [], "a look changes nothing"
    here = f"/approvals/batch?m={rows[0]['id']}"
    members = [f"{one['id']}.{one['evidence_version']}" for one in rows]
    page = operator.press(
        "/approvals/batch/approve", here, member=members, reason="bad rack", policy="assumed"
    )
    assert "4 of 5 approved" in page
    assert "was not decided" in page
    for one in rows:
        if one["id"] != held["id"]:
            service.settled(one)
    after = {one["id"]: one for one in service.proposals()}
    assert after[held["id"]]["status"] == "proposed"
    assert sorted(one["status"] for one in after.values()) == ["proposed"] + ["verified"] * 4
    batch = next(one["batch"] for one in after.values() if one["batch"])
    read = ask(service, "GET", f"/proposals/batches/{batch}").json()
    assert (read["asked"], read["decided"], read["reason"]) == (5, 4, "bad rack")
    assert [one["code"] for one in read["members"] if not one["decided"]] == ["veto"]


def test_a_program_decides_many_and_each_is_told(service: Service) -> None:
    rows = service.proposals(status="proposed")
    members = [{"id": one["id"], "evidence_version": one["evidence_version"]} for one in rows]
    members[0]["evidence_version"] += 1
    body = {"verdict": "rejected", "members": members, "reason": "software"}
    done = ask(service, "POST", "/proposals/batch", **body).json()
    assert (done["asked"], done["decided"]) == (5, 5), "a no is never held up by what is newer"
    body["verdict"] = "approved"
    again = ask(service, "POST", "/proposals/batch", **body).json()
    assert {one["code"] for one in again["members"]} == {"already_decided"}
    bad = ask(service, "POST", "/proposals/batch", verdict="approved", members=[])
    assert bad.status_code == 422
    assert httpx2.post(f"{service.url}/api/v1/proposals/batch", json=body).status_code == 401


def test_a_veto_is_set_and_lifted_on_the_page_of_a_node(service: Service) -> None:
    proposal = service.proposals(status="proposed")[0]
    name = proposal["target"]["node"]
    operator = service.person("operator")
    here = _page_of(operator, name)
    page = operator.press(f"{here}/vetoes", here, reason="bring-up", hours="2")
    assert "forbids to touch" in page
    assert "Nobody may touch this node" in page
    assert service.decide(proposal).json()["error"]["code"] == "veto"
    (veto,) = ask(service, "GET", "/vetoes").json()["items"]
    assert (veto["node"], veto["holds"]) == (name, True)
    page = operator.press(f"{here}/vetoes/{veto['id']}/lift", here, reason="it is up")
    assert "lifted the veto" in page
    assert "1 earlier veto" in page
    assert service.decide(proposal).json()["status"] == "verified"
    wrong = operator.send(f"{here}/vetoes", here, reason="x", hours="soon")
    assert wrong.status_code == 422
    viewer = service.person("viewer")
    assert viewer.send(f"{here}/vetoes", reason="x").status_code == 403


def _page_of(person: Person, name: str) -> str:
    answer = person.http.get("/search", params={"q": name}, follow_redirects=True)
    assert answer.status_code == 200
    path = answer.url.path
    if not path.startswith("/nodes/"):
        start = answer.text.index('href="/nodes/') + len('href="')
        path = answer.text[start : answer.text.index('"', start)]
    return str(path)


def test_a_comment_stands_on_the_proposal(service: Service) -> None:
    proposal = service.proposals(status="proposed")[0]
    here = f"/proposals/{proposal['id']}"
    page = service.person("operator", "zoe").press(f"{here}/comments", here, text="wait for noon")
    assert "wait for noon" in page
    answer = ask(service, "POST", f"{here}/comments", text="seen")
    assert [one["text"] for one in answer.json()["items"]] == ["wait for noon", "seen"]
    service.decide(proposal, "reject")
    assert "wait for noon" in service.person("viewer").get(here)


def test_the_brake_by_program(service: Service) -> None:
    assert ask(service, "GET", "/brake").json()["pulled"] is False
    answer = ask(service, "POST", "/brake", pulled=True, reason="storm").json()
    assert answer == {"pulled": True, "changed": True}
    assert ask(service, "POST", "/brake", pulled=True, reason="again").json()["changed"] is False
    page = service.person("viewer").get("/approvals")
    assert "The brake is pulled" in page
    assert ask(service, "POST", "/brake", pulled=False, reason="over").json()["changed"] is True
    assert ask(service, "POST", "/brake", pulled=False, reason="").status_code == 422


def test_destroying_many_asks_to_type_how_many(
    service: Service, make_replacements: Callable[[Service], list[str]]
) -> None:
    chosen = make_replacements(service)
    approver = service.person("approver")
    here = "/approvals/batch?" + "&".join(f"m={one}" for one in chosen)
    page = approver.get(here)
    assert "destroy 1 node" in page, "of five GPU nodes one may be destroyed at one time"
    assert "What would be lost" in page
    assert "1 of at most 1 of the cluster’s 5 GPU nodes being destroyed." in page
    members = [f"{chosen[0]}.1"]
    page = approver.press("/approvals/batch/approve", here, member=members, typed="yes")
    assert "was not typed. Nothing was approved." in page
    page = approver.press("/approvals/batch/approve", here, member=members, typed="Destroy 1 node")
    assert "1 of 1 approved" in page


@pytest.fixture
def make_replacements() -> Callable[[Service], list[str]]:
    """Give a function that writes two replacements down as waiting."""
    from datetime import timedelta

    from app.store import ids, proposals
    from app.store.connection import Connection

    def make(service: Service) -> list[str]:
        now = service.context.now()
        cordons = service.proposals(status="proposed")[:2]

        def write(connection: Connection) -> list[int]:
            made = []
            for one in cordons:
                like = proposals.get(connection, ids.read(one["id"]))
                assert like is not None
                row_id = ids.derive("proposal", like.case_id, "replace", 9)
                names = ("case_id", "cluster", "node_id", "node_name", "instance_id", "gpu_uuid")
                row: dict[str, Any] = {n: getattr(like, n) for n in (*names, "table_version")}
                proposals.add(
                    connection,
                    row | {
                        "id": row_id, "action": "replace", "ordinal": 9, "status": "proposed",
                        "evidence_version": 1, "recommended_by": "W1", "created_at": now,
                        "expires_at": now + timedelta(days=1), "why": "a test",
                    },
                )  # fmt: skip
                made.append(row_id)
            return made

        return [ids.show(one) for one in service.context.store.write(write)]

    return make
