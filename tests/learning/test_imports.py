"""A first decision loads nothing heavier than numpy, and a missing package is named in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluice.errors import BadInputError, missing_extra, needs_extra
from tests.policies.jobs import job

SEEN = job(
    "source>map",
    source={"parallelism": 2, "arrival_rate": 1000, "input_rate": 1000, "output_rate": 1000, "busy": 0.5, "lag": 0},
    map={"parallelism": 3, "input_rate": 1000, "output_rate": 1000, "busy": 0.4, "lag": 0, "lag_rate": 0},
)
HEAVY = ("numba", "scipy", "sklearn", "threadpoolctl")

DECIDE = """
import sys
from sluice.model import Observation
from sluice.protocol import policies
name, text = sys.argv[1:]
policies.create(name).decide(Observation.model_validate_json(text), {})
print(*sorted({found.partition(".")[0] for found in sys.modules}))
"""


def run(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["conttune", "dragster", "big-ds2", "random-search", "qescalor"])
def test_a_first_decision_loads_nothing_heavier_than_numpy(name):
    ended = run(DECIDE, name, SEEN.to_json())
    assert ended.returncode == 0, ended.stderr
    assert not set(HEAVY) & set(ended.stdout.split())


@pytest.mark.parametrize("name", ["conttune", "dragster", "random-search", "qescalor"])
def test_a_policy_without_numpy_says_what_to_install(name):
    module = name.replace("-", "_")
    ended = run(f"import sys; sys.modules['numpy'] = None; import sluice.policies.{module}")
    expected = f"policy {name!r} needs the package numpy: install sluice[learning]"
    assert ended.stderr.strip().splitlines()[-1] == f"sluice.errors.BadInputError: {expected}"


def test_a_fit_of_many_positions_does_without_threadpoolctl():
    fit = "from sluice.learning.gaussian_process import GaussianProcess as G; G.fit(range(1, 50), range(1, 50))"
    ended = run(f"import sys; sys.modules['threadpoolctl'] = None; {fit}")
    assert ended.returncode == 0, ended.stderr


def test_the_sizes_need_no_numpy():
    assert run("import sys; sys.modules['numpy'] = None; import sluice.learning.instance_sizes").returncode == 0


def test_a_missing_module_of_our_own_is_a_bug_and_no_missing_extra():
    with pytest.raises(ModuleNotFoundError), needs_extra("a policy", "learning"):
        import sluice.nowhere  # noqa: F401


def test_a_missing_extra_is_bad_input():
    error = missing_extra("policy 'x'", "numpy", "learning")
    assert isinstance(error, BadInputError)
    assert str(error) == "policy 'x' needs the package numpy: install sluice[learning]"
