"""Is there any request, well formed or not, that ends in an internal error?

Ten thousand requests made from the published OpenAPI document, spread over its operations: as it
says and against it.  Bad input has to be refused with a status below 500 and a body of our form.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok
from starlette.testclient import TestClient

from app.config import Settings
from app.main import create_app
from tests.fuzz.generate import Maker

TOKEN = "the-token-of-the-fuzz-test"
REQUESTS = 10_000
INDEPENDENT = 10  # requests of another generator for each operation


@pytest.fixture
def app(migrated_sqlite_url: str, tmp_path: Path) -> FastAPI:
    """Serve on one database that fills with nonsense."""
    return create_app(
        Settings(database_url=migrated_sqlite_url, data_dir=tmp_path, admin_token=TOKEN)
    )


@pytest.fixture
def address(app: FastAPI, free_port: int) -> Iterator[str]:
    """Serve over HTTP; gives the address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=free_port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{free_port}"
    server.should_exit = True
    thread.join()


def strict(text: str) -> Any:
    """Decode JSON as browsers do."""

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} in an answer")

    return json.loads(text, parse_constant=refuse)


def hold(status: int, text: str, kind: str, request: object) -> None:
    """Hold what is true of every answer."""
    assert status < 500, (request, text[:500])
    if status >= 400:
        error = strict(text)["error"]
        assert {"code", "message", "field"} <= error.keys(), request
    elif kind.startswith("application/json"):
        strict(text)


@pytest.mark.timeout(900)
def test_ten_thousand_requests(app: FastAPI) -> None:
    """No request ends in an internal error, and enough of them were taken and refused."""
    contract = app.openapi()
    operations = [(method, path) for path, of in contract["paths"].items() for method in of]
    maker = Maker(contract, seed=20_261_130)
    statuses: Counter[int] = Counter()
    with TestClient(app, raise_server_exceptions=False) as http:
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        for number in range(REQUESTS):
            method, path = operations[number % len(operations)]
            address, body = maker.request(method, path)
            answer = http.request(method, address, content=body)
            kind = answer.headers.get("content-type", "")
            hold(answer.status_code, answer.text, kind, (method, address, body))
            statuses[answer.status_code] += 1
    assert statuses[201] > 100, statuses
    assert statuses[422] > 1_000, statuses


@pytest.mark.timeout(600)
def test_requests_of_another_generator(address: str) -> None:
    """The same of requests that schemathesis makes from the contract."""
    contract = schemathesis.openapi.from_url(f"{address}/api/v1/openapi.json")
    asked = Counter[str]()
    for found in contract.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if operation.path.endswith("/events"):
            continue  # it makes no line-delimited bodies; the test above does

        @given(case=operation.as_strategy())
        @settings(
            max_examples=INDEPENDENT,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Case) -> None:
            answer = case.call(headers={"Authorization": f"Bearer {TOKEN}"})
            kind = str(answer.headers.get("content-type", [""])[0])
            hold(answer.status_code, answer.text, kind, case)
            asked[case.operation.path] += 1

        ask()
    assert sum(asked.values()) > 100
