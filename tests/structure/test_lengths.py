"""Does every file and nearly every function fit on a screen or a few?"""

from __future__ import annotations

import ast
import math

from tests.structure.source import PACKAGES, ROOT, project_files, python_files, tree, where

FILE_LINES = 300
# Nine of ten functions; a table of cases or a long query may be the tenth.
FUNCTION_LINES_P90 = 50
FUNCTION_LINES_MAX = 100


def function_lengths() -> list[tuple[int, str]]:
    """Measure every function from its `def` to its last line, the longest last."""
    return sorted(
        ((node.end_lineno or node.lineno) - node.lineno + 1, where(path, node.lineno))
        for path in python_files(*PACKAGES)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_no_file_is_longer_than_three_hundred_lines() -> None:
    watched = [
        p
        for p in project_files()
        if p.relative_to(ROOT).parts[0] in (*PACKAGES, "templates")
        and p.suffix in (".py", ".html", ".css", ".js")
    ]
    assert watched
    lengths = {str(p.relative_to(ROOT)): p.read_bytes().count(b"\n") for p in watched}
    assert {name: n for name, n in lengths.items() if n > FILE_LINES} == {}


def test_functions_are_short() -> None:
    lengths = function_lengths()
    assert lengths
    longest_of_nine_tenths = lengths[math.ceil(0.9 * len(lengths)) - 1]
    assert longest_of_nine_tenths[0] <= FUNCTION_LINES_P90, longest_of_nine_tenths
    assert [f for f in lengths if f[0] > FUNCTION_LINES_MAX] == []
