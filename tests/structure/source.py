"""Which files does the project consist of, and what does their syntax say?"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("witness", "app", "ingest")


@cache
def project_files() -> tuple[Path, ...]:
    """List what is, or is about to be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    paths = (ROOT / name.decode() for name in listed.split(b"\0") if name)
    return tuple(sorted(p for p in paths if p.is_file()))


def text_files() -> Iterator[tuple[str, str]]:
    """Give the name and the text of every file that is text."""
    for path in project_files():
        data = path.read_bytes()
        if b"\0" not in data[:4096]:
            yield str(path.relative_to(ROOT)), data.decode(errors="replace")


def python_files(*tops: str) -> list[Path]:
    """List the Python files under the given top folders."""
    chosen = [ROOT / top for top in tops]
    return [
        p
        for p in project_files()
        if p.suffix == ".py" and any(p.is_relative_to(top) for top in chosen)
    ]


@cache
def tree(path: Path) -> ast.Module:
    """Parse one file, once for all tests."""
    return ast.parse(path.read_bytes(), filename=str(path))


def imported(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Give every imported module or name of a module with its line, wherever the import stands."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def where(path: Path, line: int) -> str:
    """Name a place the way editors open it."""
    return f"{path.relative_to(ROOT)}:{line}"
