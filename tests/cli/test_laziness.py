"""The command line starts fast because it imports little; these tests say what."""

import json
import pkgutil
import subprocess
import sys

import pytest

import sluice.cli
from sluice.cli.app import app, help_lines, load

OBSERVATION = {"time_s": 15, "interval_s": 15, "operators": {"a": {"parallelism": 1, "arrival_rate": 5}}, "edges": []}
HEAVY = {"numpy", "scipy", "numba", "pyspark", "pyarrow", "pandas", "plotly", "sklearn", "ortools", "matplotlib"}


def call(*arguments, missing=(), stdin=""):
    """Run a command in a process of its own; what it printed, and the modules it ended with."""
    code = f"""
import sys
for package in {tuple(missing)!r}:
    sys.modules[package] = None
from sluice.cli import main
try:
    main({arguments!r})
finally:
    print("MODULES", *(name for name, module in sys.modules.items() if module), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, input=stdin, check=False)
    message, _, modules = done.stderr.partition("MODULES")
    return done.returncode, done.stdout, message.strip(), set(modules.split())


def packages(modules):
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("name", help_lines())
def test_the_line_of_help_is_the_commands_own(name):
    assert (load(name).help or "").splitlines()[0] == help_lines()[name]


def test_every_registered_command_is_listed():
    for module in pkgutil.iter_modules(sluice.cli.__path__):
        __import__(f"sluice.cli.{module.name}")
    registered = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    assert registered == set(help_lines())


def test_help_lists_every_command_in_full_and_imports_none():
    code, out, _, modules = call("--help")
    assert code == 0
    for name, line in help_lines().items():
        assert f"  {name}" in out
        assert line in out
    assert not packages(modules) & (HEAVY | {"pydantic", "rich"})
    assert {name for name in modules if name.startswith("sluice.cli.")} == {"sluice.cli.app"}


def test_deciding_with_ds2_needs_the_core_only():
    code, out, _, modules = call("decide", "--policy", "ds2", "-", stdin=json.dumps(OBSERVATION))
    assert code == 0
    assert json.loads(out)["parallelism"] == {"a": 1}
    assert not packages(modules) & HEAVY
    assert not [name for name in modules if name.startswith(("sluice.learning", "sluice.lab", "sluice.spark"))]


def test_a_misspelt_command_is_answered_with_the_nearest():
    code, _, err, _ = call("decid")
    assert (code, err) == (2, "sluice: No such command 'decid'. Did you mean 'decide'?")


def test_policies_without_their_packages_are_listed_with_the_extra_they_need():
    code, out, _, _ = call("policies", "--json", missing=HEAVY)
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert code == 0
    assert entries["ds2"]["parameters"]
    assert entries["qescalor"]["summary"].endswith("install sluice[learning]")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "q1"], "the command 'run' needs the package numpy: install sluice[lab]"),
        (
            ["decide", "--policy", "qescalor", "-"],
            "policy 'qescalor' needs the package numpy: install sluice[learning]",
        ),
    ],
)
def test_a_missing_package_is_one_line_that_names_the_extra(arguments, said):
    code, out, err, _ = call(*arguments, missing=HEAVY, stdin=json.dumps(OBSERVATION))
    assert (code, out, err) == (2, "", f"sluice: {said}")
