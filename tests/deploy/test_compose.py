"""Would the Compose file start what it says, with the Dockerfile and the Prometheus beside it?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PROGRAMS = Path(sys.executable).parent


def compose(root: Path, file: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Let the real Compose read a file as if it lay at the top of the project."""
    return subprocess.run(
        [PROGRAMS / "docker-compose", "--project-directory", root, "-f", file, "config"],
        env={"PATH": os.environ["PATH"], "HOME": str(file.parent), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def effective(root: Path) -> dict[str, Any]:
    done = compose(root, root / "docker-compose.yml", POSTGRES_PASSWORD="word")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = yaml.safe_load(done.stdout)
    return read


def test_the_service_the_database_and_prometheus_are_there(effective: dict[str, Any]) -> None:
    assert set(effective["services"]) == {"witness", "postgres", "prometheus"}
    environment = effective["services"]["witness"]["environment"]
    assert environment["WITNESS_DATABASE_URL"] == "postgresql://witness:word@postgres:5432/witness"
    assert environment["WITNESS_CLUSTERS"] == "{}"


def test_nothing_listens_beyond_the_loopback(effective: dict[str, Any]) -> None:
    published = [p for s in effective["services"].values() for p in s.get("ports", [])]
    assert {p["host_ip"] for p in published} == {"127.0.0.1"}


def test_a_password_has_to_be_chosen(root: Path) -> None:
    done = compose(root, root / "docker-compose.yml")
    assert done.returncode != 0
    assert "POSTGRES_PASSWORD" in done.stderr


def test_a_misspelt_key_is_refused(root: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "docker-compose.yml"
    text = (root / "docker-compose.yml").read_text()
    wrong.write_text(text.replace("restart:", "restrat:", 1))
    done = compose(root, wrong, POSTGRES_PASSWORD="word")
    assert done.returncode != 0
    assert "restrat" in done.stderr


def test_prometheus_scrapes_a_service_that_exists(root: Path, effective: dict[str, Any]) -> None:
    configured = yaml.safe_load((root / "deploy/prometheus.yml").read_text())
    targets = [
        target
        for job in configured["scrape_configs"]
        for group in job.get("static_configs", [])
        for target in group["targets"]
    ]
    assert targets == ["witness:8080"]
    assert effective["services"]["witness"]["environment"]["WITNESS_PORT"] == "8080"


def test_the_dockerfile_passes_its_linter_and_the_linter_looks(root: Path, tmp_path: Path) -> None:
    def lint(file: Path) -> str:
        done = subprocess.run(
            [PROGRAMS / "hadolint", "--no-color", file], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    assert lint(root / "deploy/Dockerfile") == ""
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM python\nRUN cd /srv\n")
    assert "DL3006" in lint(wrong)


def test_the_image_gets_what_it_copies(root: Path) -> None:
    lines = (root / "deploy/Dockerfile").read_text().splitlines()
    copied = {
        name
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for name in line.split()[1:-1]
    }
    allowed = {
        line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    assert copied <= allowed | {p.name for p in root.glob("requirements*.lock")}
    assert {name for name in copied if not (root / name).exists()} == set()
