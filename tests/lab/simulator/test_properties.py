"""What must hold in every simulation: nothing leaks, nothing depends on luck, the bottleneck sets the pace."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.control.decider import Decider
from sluice.control.loop import Loop
from sluice.journal.file import FileJournal
from sluice.lab.simulator import Linear, SimulatedEngine, SimulatedJob, SimulatedOperator, SimulatorSettings
from sluice.model import Cluster, Edge, Placement, Recommendation, Target

MICRO = 1_000_000
patiently = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def jobs(draw, *, one_source=False, noise=True):
    """Random graphs: every operator but the sources has one to three predecessors among those before it."""
    size = draw(st.integers(2, 7))
    names = [f"op{number}" for number in range(size)]
    edges = []
    for number in range(1, size):
        is_source = not one_source and draw(st.integers(0, 4)) == 0
        feeders = [] if is_source else draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=3))
        edges += [
            Edge(source=names[feeder], target=names[number], share=draw(st.sampled_from([1.0, 0.5, 0.3])))
            for feeder in sorted(feeders)
        ]
    operators = tuple(
        SimulatedOperator(
            name=name,
            capacity=Linear(draw(st.floats(200 if one_source else 20, 2000))),
            selectivity=draw(st.sampled_from([0.0, 0.01, 1 / 3, 1.0, 2.5]))
            if not one_source
            else draw(st.floats(0.3, 2)),
            window_s=None if one_source else draw(st.sampled_from([None, None, 7.0, 20.0])),
            state_bytes_per_record=draw(st.sampled_from([0.0, 50.0])),
        )
        for name in names
    )
    return SimulatedJob(
        operators=operators,
        edges=tuple(edges),
        settings=SimulatorSettings(
            buffer_records=draw(st.sampled_from([100, 5000] if one_source else [None, 1, 50, 5000])),
            rescale=draw(st.sampled_from(["job", "operators"])),
            downtime_s=draw(st.sampled_from([0.0, 3.0])),
            instance_start_s=draw(st.sampled_from([0.0, 4.0])),
            state_bandwidth_bytes_per_s=1000.0,
            noise=draw(st.sampled_from([0.0, 0.3])) if noise else 0.0,
            cluster=draw(st.sampled_from([None, Cluster.uniform(2, 50, cpu=1.0)])) if noise else None,
        ),
    )


def plans(job):
    def plan(counts):
        parallelism = dict(zip(job.graph.names, counts, strict=True))
        placement = None
        if job.settings.cluster:
            first = {name: count // 2 for name, count in parallelism.items()}
            rest = {name: count - first[name] for name, count in parallelism.items()}
            placement = Placement(tasks={"w0": first, "w1": rest})
        return Target(parallelism=parallelism, placement=placement)

    size = len(job.operators)
    return st.lists(st.integers(1, 4), min_size=size, max_size=size).map(plan)


def in_steps(rates, step_s=10):
    return lambda times_s: np.array(rates)[(times_s // step_s).astype(int) % len(rates)]


def assert_conserved(engine):
    """Every record that arrived is unread, or was consumed; every output record it stands for is somewhere."""
    state, job = engine.state, engine.job
    lag = dict(zip(job.graph.names, engine.lag_records(), strict=True))
    consumed = dict(zip(job.graph.names, state.consumed.tolist(), strict=True))
    for source, arrived in engine.arrived_records().items():
        assert arrived == consumed[source] + lag[source]
    came = dict.fromkeys(job.graph.names, 0)
    selectivity = {operator.name: operator.selectivity for operator in job.operators}
    for number, edge in enumerate(job.edges):
        owed = consumed[edge.source] * round(selectivity[edge.source] * edge.share * MICRO)
        made = int(state.emitted[number] + state.held[number] + state.pending[number]) * MICRO
        assert owed == made + int(state.credit_micro[number])
        came[edge.target] += int(state.emitted[number])
    for name in job.graph.names:
        if job.graph.topology.predecessors[name]:
            assert came[name] == consumed[name] + lag[name]
    assert min(state.queued.min(), state.held.min(), state.pending.min(), min(lag.values())) >= 0
    assert engine.missing_records() == 0


@patiently
@given(data=st.data())
def test_records_are_conserved_exactly_whatever_happens(data):
    job = data.draw(jobs())
    rates = {
        source: data.draw(st.lists(st.floats(0, 5000), min_size=1, max_size=4)) for source in job.graph.topology.sources
    }
    curves = {source: in_steps(per_step) for source, per_step in rates.items()}
    engine = SimulatedEngine(job, curves, seed=data.draw(st.integers(0, 5)))
    engine.start(data.draw(plans(job)))
    for _ in range(data.draw(st.integers(1, 6))):
        engine.clock.sleep_s(data.draw(st.integers(1, 25)))
        assert_conserved(engine)
        engine.observe()
        engine.reconcile(data.draw(plans(job)))
    counted = engine.stop()
    assert counted.lost == counted.duplicated == 0
    assert counted.arrived == counted.processed + counted.waiting


@patiently
@given(data=st.data())
def test_every_metric_is_there_and_makes_sense(data):
    job = data.draw(jobs())
    engine = SimulatedEngine(job, dict.fromkeys(job.graph.topology.sources, lambda t: np.full_like(t, 300.0)))
    engine.start(data.draw(plans(job)))
    engine.clock.sleep_s(30)
    seen = engine.observe()
    for name, metrics in seen.operators.items():
        assert metrics.busy + metrics.backpressure + metrics.idle == pytest.approx(1.0)
        assert metrics.cpu <= job.settings.cpu_ceiling + 1e-9
        assert (metrics.true_input_rate is None) == (metrics.busy == 0)
        if not job.graph.topology.predecessors[name]:
            assert metrics.lag_rate == pytest.approx(metrics.arrival_rate - metrics.input_rate)
    assert len(seen.latency_samples_s) == 30


def flows_at_scale_one(job):
    """Records/s every operator sees per record/s of the only source."""
    selectivity = {operator.name: operator.selectivity for operator in job.operators}
    flow = dict.fromkeys(job.graph.names, 0.0)
    flow[job.graph.topology.sources[0]] = 1.0
    for name in job.graph.topology.order:
        for edge in job.edges:
            if edge.source == name:
                flow[edge.target] += flow[name] * selectivity[name] * edge.share
    return flow


@patiently
@given(data=st.data())
def test_steady_throughput_is_the_analytic_bottleneck(data):
    job = data.draw(jobs(one_source=True, noise=False))
    plan = data.draw(plans(job))
    source = job.graph.topology.sources[0]
    flow = flows_at_scale_one(job)
    capacity = {operator.name: operator.capacity(plan.parallelism[operator.name]) for operator in job.operators}
    limits = {name: capacity[name] / flow[name] for name in job.graph.names}
    expected = min(limits.values())
    engine = SimulatedEngine(job, {source: lambda t: np.full_like(t, expected * 1.5 + 10)})
    engine.start(plan)
    # buffers fill before the bottleneck shows at the source
    buffered = sum(job.settings.buffer_records * count / flow[name] for name, count in plan.parallelism.items())
    engine.clock.sleep_s(200 + 20 * buffered / expected)
    engine.observe()
    engine.clock.sleep_s(400)
    seen = engine.observe()
    assert seen.operators[source].input_rate == pytest.approx(expected, rel=0.01)


@patiently
@given(data=st.data())
def test_the_operator_that_limits_is_downstream_of_the_backpressure(data):
    job = data.draw(jobs(one_source=True, noise=False))
    plan = data.draw(plans(job))
    source = job.graph.topology.sources[0]
    flow = flows_at_scale_one(job)
    limits = {op.name: op.capacity(plan.parallelism[op.name]) / flow[op.name] for op in job.operators}
    slowest, second = sorted(limits.values())[:2]
    if second < slowest * 1.2:
        return
    bottleneck = min(limits, key=limits.get)
    engine = SimulatedEngine(job, {source: lambda t: np.full_like(t, slowest * 2 + 10)})
    engine.start(plan)
    buffered = sum(job.settings.buffer_records * count / flow[name] for name, count in plan.parallelism.items())
    engine.clock.sleep_s(200 + 20 * buffered / slowest)
    engine.observe()
    engine.clock.sleep_s(100)
    seen = engine.observe()
    blocked = {name for name, metrics in seen.operators.items() if metrics.backpressure > 0.05}
    assert bottleneck not in blocked
    assert seen.operators[bottleneck].busy > 0.98
    assert all(
        any(successor in blocked | {bottleneck} for successor in job.graph.topology.successors[name])
        for name in blocked
    )
    if bottleneck != source:
        assert source in blocked


class Wobble:
    """Recommends something else every time, from its memory alone."""

    def decide(self, observation, memory):
        step = memory.get("step", 0)
        counts = {name: 1 + (step + number) % 3 for number, name in enumerate(observation.operators)}
        return Recommendation(parallelism=counts, reason=f"step {step}"), {"step": step + 1}


@patiently
@given(job=jobs(), seed=st.integers(0, 1000))
def test_same_seed_same_journal_byte_for_byte(tmp_path_factory, job, seed):
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", "second"):
        engine = SimulatedEngine(job, dict.fromkeys(job.graph.topology.sources, lambda t: 200 + 100 * np.sin(t)), seed)
        loop = Loop(engine=engine, decider=Decider(Wobble()), journal=FileJournal(folder / name, durable=False))
        loop.run(Target(parallelism=dict.fromkeys(job.graph.names, 2)), duration_s=60, interval_s=10)
    first = (folder / "first").read_bytes()
    assert first == (folder / "second").read_bytes()
    kinds = [json.loads(line)["kind"] for line in first.splitlines()]
    assert kinds.count("cycle") == 6
    assert kinds[-1] == "end"
