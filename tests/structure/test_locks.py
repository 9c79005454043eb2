"""Do the lock files hold exactly one hashed version of everything that pyproject.toml asks for?"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.structure.source import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENTRY = re.compile(r"^([\w.-]+)==([^\s;]+).*?(?=^\S|\Z)", re.M | re.S)


def pins(lock: str) -> dict[str, tuple[str, int]]:
    """Read a lock: name to version and number of hashes."""
    text = (ROOT / lock).read_text()
    found = [(m[1], m[2], m[0].count("--hash=sha256:")) for m in ENTRY.finditer(text)]
    assert len({name for name, _, _ in found}) == len(found), "a name is pinned twice"
    return {canonicalize_name(name): (version, hashes) for name, version, hashes in found}


def group(name: str) -> list[str]:
    """List a dependency group with the groups it includes."""
    wanted: list[str] = []
    for item in PROJECT["dependency-groups"][name]:
        wanted += [item] if isinstance(item, str) else group(item["include-group"])
    return wanted


SERVICE = PROJECT["project"]["optional-dependencies"]["service"]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", SERVICE + group("build")),
        ("requirements-dev.lock", SERVICE + group("dev")),
        ("requirements-uv.lock", ["uv"]),
        ("requirements-train.lock", group("train")),
        ("requirements-triton.lock", group("triton")),
    ],
)
def test_a_lock_satisfies_what_is_asked_for(lock: str, wanted: list[str]) -> None:
    pinned = pins(lock)
    for text in wanted:
        requirement = Requirement(text)
        version, _ = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True), (text, version)
    assert [name for name, (_, hashes) in pinned.items() if hashes == 0] == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-train.lock"])
def test_locks_of_one_environment_agree_on_every_version(lock: str) -> None:
    one, development = pins(lock), pins("requirements-dev.lock")
    both = one.keys() & development.keys()
    assert {n: one[n][0] for n in both if development[n][0] != one[n][0]} == {}


def test_no_lock_holds_torch_whose_build_depends_on_the_machine() -> None:
    assert "torch" not in pins("requirements-train.lock")
    assert (ROOT / "requirements-torch.txt").read_text().count("==") == 1


def test_the_training_side_brings_nothing_along() -> None:
    assert PROJECT["project"]["dependencies"] == []
