"""Registries import what is asked for and nothing else."""

import importlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import sluice.policies
from sluice.errors import BadInputError
from sluice.protocol import policies
from sluice.registry import Registry, build

ENTRY = '''
from dataclasses import dataclass
from things import register

@register("{name}")
@dataclass(frozen=True, kw_only=True)
class Thing:
    """A {name}."""
'''


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """`one`, `two-words`, `deep` in a subfolder, and `other` in a file of another name."""
    folder = tmp_path / "things"
    (folder / "below").mkdir(parents=True)
    files = {
        "__init__": "register = None",
        "one": ENTRY.format(name="one"),
        "two_words": ENTRY.format(name="two-words"),
        "below/__init__": "",
        "below/deep": ENTRY.format(name="deep"),
        "misnamed": ENTRY.format(name="other"),
    }
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = Registry("thing", "things", extra="lab")
    importlib.import_module("things").register = found.register
    yield found
    for name in [name for name in sys.modules if name.partition(".")[0] == "things"]:
        del sys.modules[name]


def loaded():
    return {name for name in sys.modules if name.startswith("things.")} - {"things.below"}


@pytest.mark.parametrize(
    ("name", "module"), [("one", "things.one"), ("two-words", "things.two_words"), ("deep", "things.below.deep")]
)
def test_only_the_module_named_like_the_entry_is_imported(registry, name, module):
    assert registry.get(name).__doc__ == f"A {name}."
    assert loaded() == {module}


def test_an_entry_of_another_file_is_found_in_the_end(registry):
    assert registry.get("other").__doc__ == "A other."
    assert registry.names() == ("deep", "one", "other", "two-words")


def test_an_unknown_name_is_refused_with_all_the_known(registry):
    with pytest.raises(BadInputError, match="unknown thing 'nope'; known: deep, one, other, two-words"):
        registry.get("nope")


def test_names_are_file_names_where_every_file_has_one_entry(registry, monkeypatch):
    monkeypatch.setattr(registry, "_one_per_file", True)
    assert {"one", "two-words", "deep"} <= set(registry.names())
    assert loaded() == set()


def test_a_missing_package_is_named_with_its_extra(registry, tmp_path):
    (tmp_path / "things" / "heavy.py").write_text("import no_such_package.inside")
    with pytest.raises(
        BadInputError, match=r"^thing 'heavy' needs the package no_such_package: install sluice\[lab\]$"
    ):
        registry.get("heavy")


def test_a_listing_notes_what_cannot_be_imported(registry, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_one_per_file", True)
    (tmp_path / "things" / "misnamed.py").unlink()
    (tmp_path / "things" / "heavy.py").write_text("import no_such_package")
    summaries = {entry["name"]: entry["summary"] for entry in registry.describe()}
    assert summaries["heavy"] == "thing 'heavy' needs the package no_such_package: install sluice[lab]"
    assert summaries["one"] == "A one."


def test_a_missing_module_of_our_own_is_a_defect_and_not_hidden(registry, tmp_path):
    (tmp_path / "things" / "broken.py").write_text("import sluice.no_such_module")
    with pytest.raises(ModuleNotFoundError):
        registry.get("broken")


@pytest.mark.parametrize("path", sorted(Path(sluice.policies.__file__).parent.glob("[!_]*.py")), ids=lambda p: p.stem)
def test_every_policy_file_registers_the_policy_named_like_it(path):
    name = path.stem.replace("_", "-")
    module = f"sluice.policies.{path.stem}"
    assert name in policies.names()
    assert policies.get(name).__module__ == module
    here = [other for other in policies.names() if policies.get(other).__module__ == module]
    assert here == [name]


def test_choosing_ds2_imports_no_other_policy():
    code = "import sys; from sluice.protocol import policies; policies.get('ds2'); print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in names if name.startswith("sluice.policies.")] == ["sluice.policies.ds2"]
    assert not {name.partition(".")[0] for name in names} & {"numpy", "scipy", "numba"}


@dataclass(frozen=True, kw_only=True)
class Timed:
    quiet_s: float | None = 5.0
    share: float = 0.5


@pytest.mark.parametrize(("text", "quiet_s"), [("1m", 60.0), ("90", 90.0), (7, 7.0), ("none", None)])
def test_a_parameter_in_seconds_may_have_its_unit(text, quiet_s):
    assert build(Timed, {"quiet_s": text}, "guards").quiet_s == quiet_s


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quiet_s": "soon"}, r"guards: quiet_s must be seconds or a time .* got 'soon'"),
        ({"share": "5m"}, r"guards: share: .* got '5m'"),
    ],
)
def test_what_is_no_time_is_refused_by_name(settings, said):
    with pytest.raises(BadInputError, match=said):
        build(Timed, settings, "guards")
