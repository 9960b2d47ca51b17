"""Samples of operators: kept as they are taken, and a pass that goes on where it ended."""

from __future__ import annotations

import json

import pytest

from sluice.errors import BadInputError
from sluice.lab.spark_sampling import check_samples, models_of, rates_of, sample_operators
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling
from sluice.model import InstanceSize

pytest.importorskip("sklearn")

SIZES = [InstanceSize(name=f"c{cores}", cpu_cores=cores, memory_mb=512) for cores in (1, 2, 3, 4, 5)]
RULE = ConvergenceRule(windows=2, tolerance=0.1)


class Nodes:
    """Rates in proportion to the cores, up to three; `broken` cannot be started."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.started: list[str] = []

    def rates(self, size):
        self.started.append(size.name)
        if size.name == self.broken:
            raise BadInputError("no such node")
        try:
            while True:
                yield 100.0 * min(size.cpu_cores, 3)
        finally:
            self.started[-1] += " ended"


def test_every_sample_is_kept_and_a_broken_pass_goes_on(tmp_path):
    path, said = tmp_path / "samples.json", []
    first = Nodes(broken="c3")
    with pytest.raises(BadInputError):
        sample_operators({"map": first}, SIZES, FixedStepSampling(step=1), RULE, path, said.append)
    assert first.started == ["c1 ended", "c2 ended", "c3"]
    assert [one["rate"] for one in json.loads(path.read_text())["map"]] == [100.0, 200.0]
    again = Nodes()
    other = tmp_path / "again.json"
    other.write_bytes(path.read_bytes())
    found = sample_operators({"map": again}, SIZES, FixedStepSampling(step=1), RULE, other, said.append)
    assert again.started[0] == "c3 ended"
    assert [one.size.name for one in found["map"]] == ["c1", "c2", "c3", "c4", "c5"]
    assert said[0] == "map on c1: 100 rec/s after 4 windows"


def test_dsa_takes_fewer_and_the_model_fills_in_the_rest(tmp_path):
    sizes = [InstanceSize(name=f"c{n}", cpu_cores=1 + n / 5, memory_mb=512) for n in range(16)]
    found = sample_operators({"map": Nodes()}, sizes, DynamicSampling(), RULE, tmp_path / "s.json", print)
    assert len(found["map"]) < len(sizes)
    rates = rates_of(models_of(found), sizes)["map"]
    assert set(rates) == {size.name for size in sizes}
    assert rates["c15"] == pytest.approx(300, rel=0.15)


def test_a_size_that_is_another_one_now_is_sampled_again(tmp_path):
    path = tmp_path / "samples.json"
    sample_operators({"map": Nodes()}, SIZES[:2], FixedStepSampling(step=1), RULE, path, print)
    grown = [SIZES[0], SIZES[1].model_copy(update={"cpu_cores": 3.0})]
    again = Nodes()
    found = sample_operators({"map": again}, grown, FixedStepSampling(step=1), RULE, path, print)
    assert again.started == ["c2 ended"]
    assert {one.size.name: one.rate for one in found["map"]} == {"c1": 100.0, "c2": 300.0}


def test_samples_of_operators_that_are_not_sampled_now_stay(tmp_path):
    path = tmp_path / "samples.json"
    for name in ("map", "count"):
        sample_operators({name: Nodes()}, SIZES[:2], FixedStepSampling(step=1), RULE, path, print)
    assert sorted(json.loads(path.read_text())) == ["count", "map"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"map": [{"size": {"name"', "samples file '.*' is no JSON"),
        ("[]", "samples file"),
        ('{"map": []}', "operator 'map' has no sample"),
        (
            '{"other": [{"size": {"name": "a", "cpu_cores": 1, "memory_mb": 1}, "rate": 1}]}',
            "has operator 'other', this pipeline map, count: give another --out",
        ),
    ],
)
def test_a_file_that_cannot_be_gone_on_with_is_refused_in_one_line(tmp_path, content, complaint):
    path = tmp_path / "samples.json"
    path.write_text(content)
    with pytest.raises(BadInputError, match=complaint) as refused:
        check_samples(path, ["map", "count"])
    assert "\n" not in str(refused.value)


def test_chained_operators_are_known_by_all_their_names(tmp_path):
    path = tmp_path / "samples.json"
    sample_operators({"map+count": Nodes()}, SIZES[:2], FixedStepSampling(step=1), RULE, path, print)
    check_samples(path, ["map", "count"])


def test_without_samples_there_is_no_model():
    with pytest.raises(BadInputError, match="no operator has a sample"):
        models_of({})
