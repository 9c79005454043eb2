"""What may which bearer token do, and how soon is a revoked one refused?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi import APIRouter, FastAPI, Request
from starlette.testclient import TestClient

from app import auth
from app.api.reading import Reading
from app.auth import Asking, Deciding, sender
from app.context import Context
from app.store import tokens
from tests.web.conftest import ADMIN_TOKEN, HOST, Browser, Clock

probe = APIRouter(prefix="/api/probe")


@probe.post("/write")
async def write(request: Request, cluster: str, namespace: str) -> dict[str, str]:
    """Stand for intake."""
    by = await sender(request)
    by.check(cluster, namespace)
    return {"name": by.name}


@probe.post("/decide")
def decide(by: Deciding) -> dict[str, str]:
    """Stand for a decision."""
    return {"name": by.name}


@probe.get("/read")
def read(by: Reading) -> dict[str, str]:
    """Stand for a list."""
    return {"name": by.name}


@probe.get("/ask")
def ask(by: Asking) -> dict[str, str]:
    """Stand for the resume floor."""
    return {"name": by.name}


@pytest.fixture
def http(app: FastAPI) -> TestClient:
    """Give a client of the application with the probes."""
    app.include_router(probe)
    return TestClient(app, base_url=HOST, raise_server_exceptions=False)


@pytest.fixture
def make(context: Context) -> Callable[..., str]:
    """Give a function that makes a token and returns its secret."""

    def made(scope: str, cluster: str | None = None, namespace: str | None = None) -> str:
        return context.store.write(
            lambda c: tokens.create(
                c,
                name=f"{scope} of the tests",
                cluster=cluster,
                namespace=namespace,
                scope=scope,
                by="tests",
                at=context.now(),
            )
        )[1]

    return made


def bearer(secret: str) -> dict[str, str]:
    """Write the header."""
    return {"Authorization": f"Bearer {secret}"}


MAY = {
    "write": {"write", "ask"},
    "read": {"read", "ask"},
    "decide": {"decide", "read", "ask"},
    "admin": {"write", "decide", "read", "ask"},
}
METHOD = {"write": "POST", "decide": "POST", "read": "GET", "ask": "GET"}
PLACE = {"cluster": "alpine", "namespace": "research"}


@pytest.mark.parametrize("scope", sorted(MAY))
def test_a_scope_reaches_what_it_is_for(
    http: TestClient, make: Callable[..., str], scope: str
) -> None:
    secret = ADMIN_TOKEN if scope == "admin" else make(scope)
    for what, method in METHOD.items():
        params = PLACE if what == "write" else {}
        path = f"/api/probe/{what}"
        answer = http.request(method, path, params=params, headers=bearer(secret))
        assert (what, answer.status_code) == (what, 200 if what in MAY[scope] else 403)
        if answer.status_code == 403:
            assert answer.json()["error"]["code"] == "forbidden"
            assert scope in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic YTpi",
        "Bearer sw_" + "a" * 43,
        "Bearer " + ADMIN_TOKEN[:-1],
        "Bearer " + ADMIN_TOKEN + "x",
        "Bearer \xe4",
    ],
)
def test_without_a_known_token_nobody_is_let_in(http: TestClient, header: str | None) -> None:
    headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
    for what, method in METHOD.items():
        answer = http.request(method, f"/api/probe/{what}", params=PLACE, headers=headers)
        assert (what, answer.status_code) == (what, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error"]["code"] == "not_signed_in"


@pytest.mark.parametrize(
    ("cluster", "namespace", "allowed"),
    [
        ("alpine", "research", True),
        ("alpine", "production", False),
        ("beech", "research", False),
        ("Alpine", "research", False),
        ("alpine", "research ", False),
    ],
)
def test_a_token_is_bound_to_its_cluster_and_namespace(
    http: TestClient, make: Callable[..., str], cluster: str, namespace: str, allowed: bool
) -> None:
    headers = bearer(make("write", "alpine", "research"))
    params = {"cluster": cluster, "namespace": namespace}
    answer = http.post("/api/probe/write", params=params, headers=headers)
    assert answer.status_code == (200 if allowed else 403)
    if not allowed:
        said = answer.json()["error"]["message"]
        assert "namespace research of cluster alpine" in said
        assert f"namespace {namespace} of cluster {cluster}" in said


def test_a_token_of_a_cluster_speaks_for_all_its_namespaces(
    http: TestClient, make: Callable[..., str]
) -> None:
    headers = bearer(make("write", "alpine"))
    for cluster, status in (("alpine", 200), ("beech", 403)):
        params = {"cluster": cluster, "namespace": "any"}
        answer = http.post("/api/probe/write", params=params, headers=headers)
        assert answer.status_code == status


def test_a_signed_in_person_may_read_and_change_nothing_by_cookie(
    app: FastAPI, sign_in: Callable[..., Browser]
) -> None:
    app.include_router(probe)
    browser = sign_in("admin")
    assert browser.get("/api/probe/read").status_code == 200
    assert browser.http.post("/api/probe/decide").status_code == 401
    assert browser.http.post("/api/probe/write", params=PLACE).status_code == 401


def test_a_revoked_token_is_refused_within_seconds(
    http: TestClient,
    make: Callable[..., str],
    context: Context,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = make("read")
    moment = [1000.0]
    monkeypatch.setattr("app.auth.time.monotonic", lambda: moment[0])
    assert http.get("/api/probe/read", headers=bearer(secret)).status_code == 200
    with context.store.reading() as connection:
        token = tokens.by_hash(connection, tokens.hashed(secret))
    assert token is not None
    context.store.write(lambda c: tokens.revoke(c, token.id, context.now()))
    moment[0] += auth.CACHE_S + 0.1
    assert auth.CACHE_S <= 5
    assert http.get("/api/probe/read", headers=bearer(secret)).status_code == 401


def test_the_last_use_is_written_once_a_minute(
    http: TestClient,
    make: Callable[..., str],
    context: Context,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = make("read")
    monkeypatch.setattr(auth, "CACHE_S", -1.0)  # look the token up every time

    def last_used() -> object:
        with context.store.reading() as connection:
            token = tokens.by_hash(connection, tokens.hashed(secret))
        assert token is not None
        return token.last_used_at

    first = clock.now
    assert last_used() is None
    for expected in (first, first, first + timedelta(seconds=61)):
        assert http.get("/api/probe/read", headers=bearer(secret)).status_code == 200
        assert last_used() == expected
        clock.forward(seconds=30.5)


def test_known_and_unknown_tokens_are_looked_up_once(
    http: TestClient, make: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    load = auth._load

    def counted(context: Context, token_hash: str) -> tokens.Token | None:
        looked_up.append(token_hash)
        return load(context, token_hash)

    monkeypatch.setattr(auth, "_load", counted)
    good, bad = make("read"), "sw_unknown"
    for _ in range(5):
        http.get("/api/probe/read", headers=bearer(good))
        http.get("/api/probe/read", headers=bearer(bad))
    assert sorted(looked_up) == sorted([tokens.hashed(good), tokens.hashed(bad)])


def test_the_cache_does_not_grow_without_end() -> None:
    cache = auth.TokenCache()
    for number in range(auth._CACHED + 10):
        cache.put(str(number), None)
    assert cache.get("0") == (False, None)
    assert cache.get(str(auth._CACHED + 9)) == (True, None)
