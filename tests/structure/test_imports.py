"""Does each outside library stay behind the one folder that may use it?

The direction among our own packages is import-linter's part (pyproject.toml); it says nothing
about libraries, and nothing about an import inside a function of a module it does not know.
"""

from __future__ import annotations

import ast
import sys

import pytest

from tests.structure.source import PACKAGES, imported, python_files, tree, where

# Library: the only folders or files of the service that may import it.
ONLY_IN = {
    "sqlalchemy": ["app/store"],
    "alembic": ["app/store"],
    "psycopg": ["app/store"],
    "sqlite3": ["app/store"],
    "kubernetes": ["app/cluster"],
    "urllib3": ["app/cluster", "app/sources"],
    "boto3": ["app/cluster"],
    "botocore": ["app/cluster", "app/sources"],
    "jinja2": ["app/web", "app/main.py"],
    "itsdangerous": ["app/web"],
    "plotly": [],  # only its JavaScript file is used
    "uvicorn": ["app/main.py", "app/__main__.py", "app/commands", "app/serve.py"],
    "typer": ["app/__main__.py", "app/commands"],
}
# A training image has nothing but Python; the extras bring one framework each.
EXTRAS = {
    "witness/ddp/adapters": {"torch", "transformers", "accelerate", "lightning", "torchft"},
    "witness/ddp": {"torch", "triton"},
    "witness/inject": {"torch"},
    "witness/simulate": {"torch"},
    "witness/pathways": {"jax", "pathwaysutils"},
}


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    allowed = ONLY_IN[library]
    found = [
        where(path, line)
        for path in python_files(*PACKAGES)
        for name, line in imported(tree(path))
        if name.split(".")[0] == library and not where(path, line).startswith(tuple(allowed or "-"))
    ]
    assert found == []


def test_a_connection_that_is_passed_through_gets_no_statement_in_words() -> None:
    found = [
        where(path, node.lineno)
        for path in python_files(*PACKAGES)
        if not where(path, 0).startswith("app/store/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr == "exec_driver_sql"
    ]
    assert found == []


def test_the_training_side_needs_only_the_standard_library() -> None:
    files = python_files("witness")
    assert files
    strangers = []
    for path in files:
        extra = next((v for k, v in EXTRAS.items() if where(path, 0).startswith(k + "/")), set())
        known = sys.stdlib_module_names | {"witness"} | extra
        strangers += [
            f"{where(path, line)} imports {name}"
            for name, line in imported(tree(path))
            if name.split(".")[0] not in known
        ]
    assert strangers == []


def test_the_service_does_not_import_its_tests() -> None:
    found = [
        where(path, line)
        for path in python_files(*PACKAGES, "migrations")
        for name, line in imported(tree(path))
        if name.split(".")[0] == "tests"
    ]
    assert found == []


def test_an_import_is_found_inside_a_function_and_under_another_name() -> None:
    module = ast.parse(
        "def f():\n    from sqlalchemy.orm import Session as S\n    import boto3 as b"
    )
    assert sorted(imported(module)) == [
        ("boto3", 3),
        ("sqlalchemy.orm.Session", 2),
    ]
