"""Which source a simulated run depends on, as a short text: a stored result of other source is out of date.

Comments, docstrings and formatting do not count.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SHARED = (
    "benchmarks/policy_cases.py",
    "benchmarks/policy_distorted.py",
    "src/sluice/control/guards.py",
    "src/sluice/lab/clairvoyant/*.py",
    "src/sluice/lab/pipelines/**/*.py",
    "src/sluice/lab/run.py",
    "src/sluice/lab/simulator/*.py",
    "src/sluice/lab/summary.py",
    "src/sluice/lab/workloads/*.py",
)
"""What every run depends on."""
FOLLOWED = ("sluice.policies.", "sluice.dataflow.", "sluice.learning.")
"""Packages in which a policy's own imports are followed."""


def fingerprint(policy_module: str) -> str:
    """Of a policy, all it imports, and what every run depends on."""
    files = {file for pattern in SHARED for file in REPOSITORY.glob(pattern)} | _imported(policy_module)
    return hashlib.sha256("".join(_code(file) for file in sorted(files)).encode()).hexdigest()[:8]


def _imported(module: str) -> set[Path]:
    found: dict[str, Path] = {}
    left = [module]
    while left:
        name = left.pop()
        file = REPOSITORY / "src" / f"{name.replace('.', '/')}.py"
        if name.startswith(FOLLOWED) and name not in found and file.exists():
            found[name] = file
            left += _imports(ast.parse(file.read_text()))
    return set(found.values())


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _code(file: Path) -> str:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_text(one)]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
