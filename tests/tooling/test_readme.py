"""Does the documentation say what is true of this version?"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from app.config import Settings
from tests.tooling.settings_table import README, with_table


def test_the_table_of_settings_is_that_of_the_code() -> None:
    text = README.read_text()
    assert text == with_table(text), "run `make format`"


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_links_between_documents_lead_somewhere(root: Path) -> None:
    documents = [p for p in root.glob("**/*.md") if ".venv" not in p.parts]
    assert README in documents
    lost = [
        f"{document.relative_to(root)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert lost == []


def test_every_named_command_of_make_exists(root: Path) -> None:
    offered = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True)
    known = set(re.findall(r"make ([a-z]+)", offered.stdout))
    named = {
        command
        for document in ("README.md", "CONTRIBUTING.md", "deploy/README.md")
        for command in re.findall(r"(?:`|^)make ([a-z]+)", (root / document).read_text(), re.M)
    }
    assert {"run", "test", "demo"} <= named
    assert named <= known


def test_the_first_alarm_is_one_that_the_documentation_may_show(root: Path) -> None:
    shown = re.search(r"<<'JSON'\n(.*?)\nJSON\n", README.read_text(), re.S)
    assert shown is not None
    document = json.loads(shown[1])
    assert {"cluster", "namespace", "job", "attempt", "time", "alarm"} <= set(document)
    first, last = document["alarm"]["suspect_window"]
    assert (first, last) == (document["alarm"]["last_audit_pass"] + 1, document["alarm"]["step"])
