"""Tests and benchmarks share through `sluice.testing` only; a class has its name to itself."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def imported_packages(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize(("folder", "foreign"), [("tests", "benchmarks"), ("benchmarks", "tests"), ("src", "tests")])
def test_a_folder_does_not_import_from_its_neighbour(folder: str, foreign: str) -> None:
    files = sorted((REPOSITORY / folder).rglob("*.py"))
    assert files
    assert [str(file) for file in files if foreign in imported_packages(file)] == []


def test_no_class_name_is_used_twice() -> None:
    names = Counter(
        node.name
        for file in (REPOSITORY / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
