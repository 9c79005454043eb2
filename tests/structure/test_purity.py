"""Is every rule a function of its arguments alone?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.structure.source import python_files, tree, where

# What reads a clock, draws a number, or touches the world.
FORBIDDEN_NAMES = {"open", "print", "input", "eval", "exec", "breakpoint", "globals", "__import__"}
FORBIDDEN_ROOTS = {"time", "random", "os", "secrets", "uuid", "socket", "subprocess", "logging"}
FORBIDDEN_METHODS = {"now", "utcnow", "today"}


def _dotted(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.insert(0, node.id)
    return parts


def impurities(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Find calls that depend on more than arguments, shared state, and records that can change."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            parts = _dotted(node.func)
            if parts and (
                (len(parts) == 1 and parts[0] in FORBIDDEN_NAMES)
                or (len(parts) > 1 and parts[0] in FORBIDDEN_ROOTS)
                or (parts[0] in {"datetime", "date"} and parts[-1] in FORBIDDEN_METHODS)
            ):
                yield node.lineno, f"calls {'.'.join(parts)}()"
        elif isinstance(node, ast.Global):
            yield node.lineno, f"changes {', '.join(node.names)} outside the function"
        # A private class is a working record inside one function; it never leaves the module.
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for decorator in node.decorator_list:
                if not _is_frozen(decorator):
                    yield node.lineno, f"class {node.name} is a dataclass that is not frozen"


def _is_frozen(decorator: ast.expr) -> bool:
    call = decorator if isinstance(decorator, ast.Call) else None
    name = _dotted(call.func if call else decorator)
    if not name or name[-1] != "dataclass":
        return True
    return call is not None and any(
        k.arg == "frozen" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )


def test_the_rules_are_pure() -> None:
    files = python_files("witness/rules")
    assert files
    found = [f"{where(p, line)}: {what}" for p in files for line, what in impurities(tree(p))]
    assert found == []


@pytest.mark.parametrize(
    "snippet",
    [
        "x = open('f')",
        "print(1)",
        "at = datetime.now(UTC)",
        "at = datetime.datetime.utcnow()",
        "day = date.today()",
        "t = time.monotonic()",
        "n = random.choice([1])",
        "def f():\n    global n\n    n = 1",
        "@dataclass\nclass A:\n    n: int",
        "@dataclasses.dataclass(slots=True)\nclass A:\n    n: int",
        "@dataclass(frozen=False)\nclass A:\n    n: int",
    ],
)
def test_an_impurity_is_seen(snippet: str) -> None:
    assert list(impurities(ast.parse(snippet)))


@pytest.mark.parametrize(
    "snippet",
    [
        "@dataclass(frozen=True, slots=True)\nclass A:\n    n: int",
        "@dataclass\nclass _Budget:\n    left: int",
        "later = now + timedelta(days=1)",
        "best = max(steps)",
    ],
)
def test_what_is_pure_passes(snippet: str) -> None:
    assert list(impurities(ast.parse(snippet))) == []
