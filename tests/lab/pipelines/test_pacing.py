"""Slots of a standard pipeline are as fast as its capacity curve says, whatever their number."""

import json

import pytest

from sluice.errors import BadInputError
from sluice.lab.pipelines import pipelines


@pytest.mark.parametrize("name", ["q1", "q11", "wordcount"])
def test_so_many_slots_together_have_the_simulators_capacity_scaled(name):
    pipeline = pipelines.create(name)
    operators = pipeline.spark().pipeline.operators
    for simulated in pipeline.simulated().operators:
        for slots in (1, 4, 16):
            together = slots * operators[simulated.name].slot_rate_at(slots)
            assert together == pytest.approx(simulated.capacity(slots) * pipeline.spark_scale)


def test_a_curve_gives_its_shape_to_all_operators_but_the_sources(tmp_path):
    curve = tmp_path / "curve.json"
    curve.write_text(json.dumps({"capacity": {"1": 100.0, "4": 300.0}}))
    operators = pipelines.create("q1", {"curve": str(curve)}).spark().pipeline.operators
    assert operators["map"].slot_rate_at(4) == pytest.approx(0.75 * operators["map"].slot_rate)
    assert operators["bids_source"].slot_rate_at(4) == pytest.approx(operators["bids_source"].slot_rate)


def test_slots_of_real_speed_have_no_rate():
    operators = pipelines.create("q1", {"paced": "false"}).spark().pipeline.operators
    assert {operator.slot_rate_at(4) for operator in operators.values()} == {None}


def test_a_curve_without_pacing_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="paced=false"):
        pipelines.create("q1", {"curve": str(tmp_path / "none.json"), "paced": "false"})
