"""`sluice` itself: everything users need, nothing before it is used."""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sluice

ROOT = Path(__file__).parents[1]
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_sluice_imports_nothing_else():
    loaded = run_python("import sys, sluice; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert not {"pydantic", "typer", "rich", "numpy", "pyspark"} & set(loaded)


@pytest.mark.parametrize("name", sluice.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(sluice, name) is not None


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(sluice.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname or alias.name for node in block.body for alias in node.names}
    assert seen == set(sluice.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        sluice.nothing  # noqa: B018


def test_attach_is_part_of_the_core():
    code = "import sys, sluice; sluice.attach; print(*{'numpy', 'pyarrow', 'pandas', 'scipy'} & sys.modules.keys())"
    assert run_python(code) == ""


def test_a_missing_package_is_one_line_that_names_the_extra():
    code = """
import sys
sys.modules["pyarrow"] = None
import sluice
try:
    sluice.Topic
except sluice.BadInputError as error:
    print(error)
"""
    assert run_python(code) == "sluice.Topic needs the package pyarrow: install sluice[spark]"


def test_a_package_that_is_too_old_is_not_called_missing():
    code = """
import sys
sys.modules["pyspark.sql.datasource"] = None
import sluice
try:
    sluice.stream_from
except sluice.BadInputError as error:
    print(error)
"""
    assert run_python(code) == (
        "sluice.stream_from needs pyspark.sql.datasource: the installed pyspark is too old for it"
    )


def examples():
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield pytest.param(path.read_text(), id=path.name)
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, block in enumerate(PYTHON_BLOCK.findall(path.read_text())):
            yield pytest.param(block, id=f"{path.name}-{number}")


@pytest.mark.parametrize("code", list(examples()))
def test_examples_import_nothing_deeper_than_sluice(code):
    nodes = list(ast.walk(ast.parse(textwrap.dedent(code))))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.startswith("sluice.")]
