"""Stories of the simulator, with numbers that can be worked out by hand."""

import numpy as np
import pytest

from sluice.errors import BadInputError
from sluice.lab.simulator import (
    CapacityTable,
    Linear,
    PowerLaw,
    SimulatedEngine,
    SimulatedJob,
    SimulatedOperator,
    SimulatorSettings,
    chain,
)
from sluice.model import Cluster, Edge, InstanceSize, OperatorChange, Placement, Target


def constant(rate):
    return lambda times_s: np.full_like(times_s, rate)


def job(*operators, edges=None, **settings):
    return SimulatedJob(
        operators=operators,
        edges=chain(*(op.name for op in operators)) if edges is None else edges,
        settings=SimulatorSettings(**settings),
    )


def started(the_job, rate, parallelism=None, **plan):
    arrivals = {source: constant(rate) for source in the_job.graph.topology.sources}
    engine = SimulatedEngine(the_job, arrivals)
    engine.start(Target(parallelism=parallelism or dict.fromkeys(the_job.graph.names, 1), **plan))
    return engine


def op(name, rate=1000.0, **costs):
    return SimulatedOperator(name=name, capacity=Linear(rate), **costs)


@pytest.mark.parametrize(
    ("capacity", "instances", "rate"),
    [
        (Linear(100), 3, 300),
        (PowerLaw(100, 0.5), 4, 200),
        (CapacityTable({1: 100, 3: 200}), 2, 150),
        (CapacityTable({1: 100, 3: 200}), 6, 400),
        (CapacityTable({2: 100}), 1, 50),
    ],
)
def test_capacity_curves(capacity, instances, rate):
    assert capacity(instances) == pytest.approx(rate)


@pytest.mark.parametrize(
    "bad", [lambda: Linear(0), lambda: PowerLaw(1, 0), lambda: CapacityTable({}), lambda: CapacityTable({0: 1.0})]
)
def test_a_capacity_that_cannot_be_is_refused(bad):
    with pytest.raises(ValueError, match="got"):
        bad()


def test_latency_is_the_age_of_the_record_being_read():
    # 100/s arrive, 50/s are read: after t seconds the record read now arrived at t/2
    engine = started(job(op("source", 50)), 100)
    engine.clock.sleep_s(100)
    seen = engine.observe()
    assert seen.latency_samples_s[-1] == pytest.approx(50, abs=0.5)
    assert seen.operators["source"].lag == 5000
    assert seen.operators["source"].lag_rate == 50


def test_a_topic_with_a_retention_forgets_whole_segments_and_counts_them_as_lost():
    # 100/s arrive, 50/s are read: 5000 by 100 s. Then the segments up to 60 s are 40 s old, and 6000 records go,
    # 1000 of them unread. At 120 s the 8000 up to 80 s go; 6000 + 20 * 50 were behind the reader, 1000 were not.
    engine = started(job(op("source", 50), retention_s=40.0, segment_s=20.0), 100)
    engine.clock.sleep_s(100)
    assert engine.observe().operators["source"].lag == 5000
    engine.clock.sleep_s(1)
    assert engine.observe().operators["source"].lag == 10_100 - 6000 - 50
    engine.clock.sleep_s(20)
    seen = engine.observe()
    assert seen.operators["source"].lag == 12_100 - 8000 - 50
    assert max(seen.latency_samples_s) <= 60
    counted = engine.stop()
    assert counted.lost == 2000
    assert counted.processed + counted.lost + counted.waiting == counted.arrived


def test_a_fast_reader_loses_nothing_to_a_retention():
    engine = started(job(op("source", 200), retention_s=40.0, segment_s=20.0), 100)
    engine.clock.sleep_s(200)
    assert engine.stop().lost == 0


def test_without_lag_there_is_no_latency():
    engine = started(job(op("source", 200)), 100)
    engine.clock.sleep_s(10)
    assert max(engine.observe().latency_samples_s) == 0


def test_a_slow_operator_blocks_those_before_it_when_buffers_are_bounded():
    engine = started(job(op("source", 1000), op("map", 1000), op("sink", 400), buffer_records=100), 900)
    engine.clock.sleep_s(30)
    engine.observe()
    engine.clock.sleep_s(30)
    seen = engine.observe().operators
    assert seen["source"].backpressure == pytest.approx(0.6, abs=0.01)
    assert seen["map"].backpressure == pytest.approx(0.6, abs=0.01)
    assert (seen["sink"].busy, seen["sink"].backpressure) == (pytest.approx(1.0), 0.0)
    assert seen["sink"].buffer_usage == 1.0
    assert seen["source"].lag_rate == pytest.approx(500, abs=1)


def test_between_topics_a_slow_operator_only_gathers_lag():
    engine = started(job(op("source", 1000), op("sink", 400), buffer_records=None), 900)
    engine.clock.sleep_s(60)
    seen = engine.observe().operators
    assert seen["source"].backpressure == 0
    assert seen["source"].lag == 0
    assert seen["sink"].lag_rate == pytest.approx(500)
    assert seen["sink"].buffer_usage is None


def test_a_window_holds_its_output_back_and_lets_go_in_a_burst():
    engine = started(
        job(op("source"), op("window", selectivity=0.5, window_s=10), op("sink"), buffer_records=None), 100
    )
    outputs = []
    for _ in range(20):
        engine.clock.sleep_s(1)
        outputs.append(engine.observe().operators["window"].output_rate)
    assert outputs.count(0) == 19
    assert outputs[10] == pytest.approx(500)


def test_a_fan_out_copies_or_splits_as_the_shares_say():
    edges = (
        Edge(source="source", target="copy"),
        Edge(source="source", target="part", share=0.25),
    )
    engine = started(job(op("source"), op("copy"), op("part"), edges=edges), 400)
    engine.clock.sleep_s(20)
    seen = engine.observe().operators
    assert seen["copy"].input_rate == 400
    assert seen["part"].input_rate == 100
    assert seen["source"].output_rate == pytest.approx(400)
    assert seen["source"].output_rates == {"copy": 400, "part": 100}


def test_a_saturated_instance_shows_the_ceilings_not_one():
    engine = started(job(op("source", 100), cpu_ceiling=0.9, busy_ceiling=0.8), 500)
    engine.clock.sleep_s(10)
    seen = engine.observe().operators["source"]
    assert (seen.cpu, seen.busy) == (pytest.approx(0.9), pytest.approx(0.8))
    assert seen.true_input_rate == pytest.approx(125)


@pytest.mark.parametrize(("rescale", "stands_still"), [("job", True), ("operators", False)])
def test_a_rescale_stops_the_job_or_only_what_changes(rescale, stands_still):
    engine = started(job(op("source"), op("sink"), buffer_records=None, rescale=rescale, downtime_s=5), 100)
    engine.clock.sleep_s(10)
    engine.observe()
    applied = engine.reconcile(Target(parallelism={"source": 1, "sink": 2}))
    engine.clock.sleep_s(5)
    seen = engine.observe().operators
    assert applied.downtime_s == 5
    assert applied.changes == {"sink": OperatorChange(before=1, requested=2)}
    assert seen["sink"].input_rate == 0
    assert (seen["source"].input_rate == 0) is stands_still


def test_more_state_makes_a_rescale_slower():
    the_job = job(
        op("source"), op("count", state_bytes_per_record=1000), downtime_s=1, state_bandwidth_bytes_per_s=50_000
    )
    engine = started(the_job, 100)
    engine.clock.sleep_s(10)
    applied = engine.reconcile(Target(parallelism={"source": 1, "count": 2}))
    assert applied.downtime_s == pytest.approx(1 + 10 * 100 * 1000 / 50_000)


def test_state_with_a_lifetime_stops_growing():
    engine = started(job(op("source", state_bytes_per_record=10, state_ttl_s=20)), 100)
    engine.clock.sleep_s(200)
    early = engine.observe().operators["source"].state_bytes
    engine.clock.sleep_s(200)
    assert engine.observe().operators["source"].state_bytes == pytest.approx(early, rel=0.01)
    assert early == pytest.approx(100 * 10 * 20, rel=0.05)


def test_new_instances_join_after_they_have_started():
    engine = started(job(op("source", 100), instance_start_s=5), 1000)
    engine.clock.sleep_s(1)
    engine.observe()
    engine.reconcile(Target(parallelism={"source": 3}))
    rates = []
    for _ in range(6):
        engine.clock.sleep_s(1)
        rates.append(engine.observe().operators["source"].input_rate)
    assert rates == [100] * 5 + [300]


def test_applying_the_same_plan_again_costs_nothing():
    engine = started(job(op("source"), downtime_s=9), 10)
    engine.clock.sleep_s(1)
    assert engine.reconcile(Target(parallelism={"source": 1})).downtime_s == 0


SIZES = (
    InstanceSize(name="small", cpu_cores=1, memory_mb=1000),
    InstanceSize(name="large", cpu_cores=4, memory_mb=4000),
)


def test_sizes_make_instances_faster():
    sized = op("source", 100, speedup=lambda size: size.cpu_cores**0.5)
    engine = started(job(sized, sizes=SIZES), 1000, {"source": 3}, sizes={"source": {"small": 1, "large": 2}})
    engine.clock.sleep_s(10)
    assert engine.observe().operators["source"].input_rate == pytest.approx(100 * (1 + 2 * 2))


def test_an_unknown_size_is_named():
    with pytest.raises(BadInputError, match="unknown instance size 'huge'; known: large, small"):
        started(job(op("a", speedup=lambda _: 1), sizes=SIZES), 1, {"a": 1}, sizes={"a": {"huge": 1}})


def test_tasks_that_share_a_full_worker_slow_each_other_down():
    # both want 1 core for 1000 records/s each; a worker has one core
    def throughput(tasks):
        the_job = job(
            op("left", 1000, cpu_per_record=0.001),
            op("right", 1000, cpu_per_record=0.001),
            edges=(),
            cluster=Cluster.uniform(2, 2, cpu=1.0),
        )
        engine = started(the_job, 1000, placement=Placement(tasks=tasks))
        engine.clock.sleep_s(20)
        engine.observe()
        engine.clock.sleep_s(20)
        return dict(engine.observe().operators.items())

    apart = throughput({"w0": {"left": 1}, "w1": {"right": 1}})
    together = throughput({"w0": {"left": 1, "right": 1}, "w1": {}})
    assert [apart[name].input_rate for name in ("left", "right")] == [1000, 1000]
    assert [together[name].input_rate for name in ("left", "right")] == pytest.approx([500, 500], rel=0.02)
    # what the policy sees is the slower instance
    assert together["left"].true_input_rate == pytest.approx(500, rel=0.02)


def test_a_worker_shared_below_its_capacity_slows_nobody():
    the_job = job(
        op("left", 1000, cpu_per_record=0.001),
        op("right", 1000, cpu_per_record=0.001),
        edges=(),
        cluster=Cluster.uniform(1, 2, cpu=1.0),
    )
    engine = started(the_job, 450, placement=Placement(tasks={"w0": {"left": 1, "right": 1}}))
    engine.clock.sleep_s(60)
    assert [metrics.lag for metrics in engine.observe().operators.values()] == [0, 0]


def test_noise_changes_every_tick_but_not_the_mean():
    engine = started(job(op("source", 100), noise=0.3), 1000)
    rates = []
    for _ in range(400):
        engine.clock.sleep_s(1)
        rates.append(engine.observe().operators["source"].input_rate)
    assert len(set(rates)) > 50
    assert np.mean(rates) == pytest.approx(100, rel=0.05)


def test_a_source_without_arrivals_is_named():
    with pytest.raises(BadInputError, match="no arrival rate for source 'source'"):
        SimulatedEngine(job(op("source")), {})


def test_settings_that_cannot_be_are_refused():
    for settings, message in [
        ({"tick_s": 0}, "tick_s must be above 0, got 0"),
        ({"cpu_ceiling": 1.5}, r"cpu_ceiling must be in \(0, 1\], got 1.5"),
        ({"downtime_s": -1}, "downtime_s must not be negative, got -1"),
        ({"buffer_records": 0}, "buffer_records must be at least 1, got 0"),
        ({"retention_s": 0}, "retention_s must be above 0, got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            SimulatorSettings(**settings)


def test_only_bytes_that_leave_a_worker_load_its_network():
    def throughput(tasks):
        the_job = job(
            op("source", 1000, net_bytes_per_record=10.0),
            op("sink", 1000),
            edges=(Edge(source="source", target="sink"),),
            cluster=Cluster.uniform(2, 2, net=5000.0),
        )
        engine = started(the_job, 1000, placement=Placement(tasks=tasks))
        engine.clock.sleep_s(20)
        engine.observe()
        engine.clock.sleep_s(20)
        return engine.observe().operators["source"].input_rate

    assert throughput({"w0": {"source": 1, "sink": 1}}) == 1000
    assert throughput({"w0": {"source": 1}, "w1": {"sink": 1}}) == pytest.approx(500, rel=0.02)


def test_a_full_disk_slows_those_who_use_it_and_nobody_else():
    the_job = job(
        op("window", 1000, io_bytes_per_record=10.0),
        op("map", 1000),
        edges=(),
        cluster=Cluster.uniform(1, 2, io=5000.0),
    )
    engine = started(the_job, 1000, placement=Placement(tasks={"w0": {"window": 1, "map": 1}}))
    engine.clock.sleep_s(20)
    engine.observe()
    engine.clock.sleep_s(20)
    seen = engine.observe().operators
    assert seen["window"].input_rate == pytest.approx(500, rel=0.02)
    assert seen["map"].input_rate == 1000
