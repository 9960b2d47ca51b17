"""The Spark part of every standard pipeline: the simulator's operators, its speeds, and no Spark to list it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluice.errors import BadInputError
from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.lab.pipelines.profiled import ProfiledPipeline
from sluice.placement.request import Profile

NAMES = pipelines.names()


@pytest.mark.parametrize("name", NAMES)
def test_spark_and_simulator_run_the_same_operators(name):
    definition = pipelines.create(name)
    assert isinstance(definition, RunsOnSpark)
    simulated, real = definition.simulated().graph, definition.spark().pipeline.graph
    assert set(real.names) == set(simulated.names)
    assert set(real.topology.edges) == set(simulated.topology.edges)


@pytest.mark.parametrize("name", NAMES)
def test_every_source_has_records_and_a_rate(name):
    job = pipelines.create(name).spark()
    assert set(job.peak_rates) == set(job.pipeline.sources)
    assert all(source.generate is not None for source in job.pipeline.sources.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_paced_slot_is_as_fast_as_the_simulators_instance_scaled(name):
    definition = pipelines.create(name, {"spark_scale": "0.5"})
    speeds = {operator.name: operator.capacity(1) for operator in definition.simulated().operators}
    rates = {spec.name: spec.slot_rate for spec in definition.spark().pipeline.operators.values()}
    assert rates == {operator: pytest.approx(speed * 0.5) for operator, speed in speeds.items()}
    free = pipelines.create(name, {"paced": "no"}).spark().pipeline.operators.values()
    assert {spec.slot_rate for spec in free} == {None}


def test_listing_pipelines_imports_no_spark():
    code = (
        "import sys; from sluice.lab.pipelines import pipelines; pipelines.describe(); "
        "assert not {'pyspark', 'pyarrow', 'sklearn'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "settings", "quoted"),
    [
        ("q1", {"spark_scale": "0"}, "spark_scale must be above 0, got 0"),
        ("q4", {"shortest_s": "30"}, "got 30"),
        ("q5", {"window_size": "3"}, "window_size"),
    ],
)
def test_bad_parameters_are_quoted(name, settings, quoted):
    with pytest.raises(BadInputError, match=quoted):
        pipelines.create(name, settings)


def profile_of(names, **changed):
    costs = {"capacity": {1: 100.0, 2: 180.0, 4: 300.0}, "selectivity": 0.5, "cpu_s_per_record": 1e-4}
    operators = [{"name": name, "parallelism": 1, "costs": {**costs, **changed}} for name in names]
    return Profile.parse({"operators": operators, "pipeline": "q1", "source_rates": {names[0]: 250.0}}, "profile")


def test_a_profile_replaces_the_simulators_costs():
    names = ("bids_source", "map", "sink")
    definition = ProfiledPipeline(definition=pipelines.create("q1"), profile=profile_of(names))
    assert definition.peak_rate == 250.0
    assert definition.source_shares() == {"bids_source": 1.0}
    job = definition.simulated()
    assert [operator.capacity(3) for operator in job.operators] == [240.0] * 3
    assert {operator.selectivity for operator in job.operators} == {0.5}
    assert job.settings.buffer_records is None


def test_a_profile_of_another_pipeline_is_refused():
    with pytest.raises(BadInputError, match="map"):
        ProfiledPipeline(definition=pipelines.create("q5"), profile=profile_of(("bids_source", "map", "sink")))


def test_a_profile_without_costs_is_refused():
    bare = Profile.parse(
        {"operators": [{"name": name, "parallelism": 1} for name in ("bids_source", "map", "sink")]}, "profile"
    )
    with pytest.raises(BadInputError, match="'sluice profile' measures them"):
        ProfiledPipeline(definition=pipelines.create("q1"), profile=bare)
