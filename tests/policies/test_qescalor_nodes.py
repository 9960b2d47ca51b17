"""QEScalor where instances are nodes: requested ahead of time, and planned without those that cannot be had."""

from __future__ import annotations

import json

import pytest

from sluice.learning.node_plan import ahead_of_time, expected_mix, most_to_be_had
from sluice.model import NodeTypeMetrics
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import job
from tests.policies.test_qescalor import EPOCH_S, qescalor

SIZES = [
    {"name": "small", "cpu_cores": 1, "memory_mb": 1024, "price_per_hour": 0.05},
    {"name": "large", "cpu_cores": 4, "memory_mb": 4096, "price_per_hour": 0.15},
]


@pytest.fixture
def prices(tmp_path) -> str:
    path = tmp_path / "sizes.json"
    path.write_text(json.dumps(SIZES))
    return str(path)


def types(start_s=30.0, **unavailable: bool) -> dict[str, NodeTypeMetrics]:
    return {
        size["name"]: NodeTypeMetrics(nodes=1, start_s=start_s, available=size["name"] not in unavailable)
        for size in SIZES
    }


def window(time_s, load, sizes, *, node_types=None, rate=100.0, lag=0.0):
    cores = sum(count * {"small": 1, "large": 4}[size] for size, count in sizes.items())
    metrics = {
        "parallelism": sum(sizes.values()),
        "sizes": sizes,
        "arrival_rate": load,
        "input_rate": min(load, rate * cores),
        "busy": min(1.0, load / (rate * cores)),
        "true_input_rate": rate * cores,
        "lag": lag,
    }
    seen = job(time_s=time_s, interval_s=10.0, op=metrics)
    return seen.model_copy(update={"node_types": types() if node_types is None else node_types})


def learned(policy, epochs):
    """A memory after epochs of a load that is low, then high, and so on."""
    memory = EMPTY_MEMORY
    for epoch in range(epochs):
        load = 80.0 if epoch % 2 == 0 else 750.0
        sizes = {"small": 1} if epoch % 2 == 0 else {"large": 2}
        _, memory = policy.decide(window(epoch * EPOCH_S, load, sizes, node_types={}), memory)
    return memory


def test_nodes_are_requested_before_their_epoch_by_the_time_they_take(prices):
    policy = qescalor(prices=prices, season_s=2 * EPOCH_S, startup_cost_s=0, shutdown_cost_s=0, band=0.0)
    memory = learned(policy, 20)
    start_s = 20 * EPOCH_S
    decision, memory = policy.decide(window(start_s, 80.0, {"small": 1}), memory)
    assert decision.sizes == {}
    decision, memory = policy.decide(window(start_s + EPOCH_S - 40, 80.0, {"small": 1}), memory)
    assert decision.is_hold
    decision, memory = policy.decide(window(start_s + EPOCH_S - 30, 80.0, {"small": 1}), memory)
    assert decision.sizes == {"op": {"small": 1, "large": 2}}
    assert decision.reason == "qescalor: ahead of the next epoch: 2 large for op, which takes 30 s"
    decision, memory = policy.decide(window(start_s + EPOCH_S - 20, 80.0, {"small": 1}), memory)
    assert decision.is_hold
    decision, memory = policy.decide(window(start_s + EPOCH_S, 750.0, {"small": 1, "large": 2}), memory)
    assert decision.sizes == {"op": {"large": 2}}


def test_what_comes_is_not_requested_twice(prices):
    policy = qescalor(prices=prices, season_s=0, catch_up_s=5)
    decision, memory = policy.decide(window(0, 390.0, {"small": 1}), EMPTY_MEMORY)
    assert decision.sizes == {"op": {"large": 1}}
    for time_s in (10, 20, 30):
        decision, memory = policy.decide(window(time_s, 390.0, {"small": 1}), memory)
        assert decision.is_hold
    decision, memory = policy.decide(window(100, 390.0, {"small": 1}), memory)
    assert not decision.is_hold


def test_a_size_that_cannot_be_had_is_planned_without_at_once(prices):
    policy = qescalor(prices=prices, season_s=0)
    decision, memory = policy.decide(window(0, 390.0, {"small": 1}), EMPTY_MEMORY)
    assert decision.sizes == {"op": {"large": 1}}
    without = types(large=True)
    decision, memory = policy.decide(window(10, 390.0, {"small": 1}, node_types=without), memory)
    assert decision.sizes == {"op": {"small": 4}}
    assert "no large can be had now, planned without" in decision.reason
    decision, memory = policy.decide(window(20, 390.0, {"small": 2}, node_types=without), memory)
    assert decision.is_hold


def test_if_no_size_can_be_had_the_plan_is_requested_all_the_same(prices):
    nothing = types(large=True, small=True)
    decision, _ = qescalor(prices=prices, season_s=0).decide(
        window(0, 390.0, {"small": 1}, node_types=nothing), EMPTY_MEMORY
    )
    assert decision.sizes == {"op": {"small": 4}}


def test_the_output_of_an_operator_is_forecast_for_the_one_behind_it():
    common = {"season_s": 2 * EPOCH_S, "band": 0.0, "horizon": 2, "startup_cost_s": 0, "shutdown_cost_s": 0}
    policy, plain = qescalor(forecast_output=True, **common), qescalor(**common)

    def seen(epoch):
        out = 100.0 if epoch % 2 == 0 else 500.0
        first = {"parallelism": 1, "arrival_rate": 100.0, "input_rate": 100.0, "busy": 1.0, "output_rate": out}
        second = {"parallelism": 5, "input_rate": out, "busy": out / 500.0, "true_input_rate": 500.0}
        return job("first>second", time_s=epoch * EPOCH_S, interval_s=10.0, first=first, second=second)

    found = {}
    for name, chosen in (("forecast", policy), ("now", plain)):
        memory = EMPTY_MEMORY
        for epoch in range(21):
            _, memory = chosen.decide(seen(epoch), memory)
            memory = json.loads(json.dumps(memory))
        found[name] = [mix["slot"] for mix in memory["plan"]["mixes"]["second"]]
    assert found["forecast"] == [1, 5]
    assert found["now"] == [1, 1]


def two_operators(time_s, load, sizes, rates=(100.0, 400.0)):
    cores = sum(count * {"small": 1, "large": 4}[size] for size, count in sizes.items())
    metrics = [
        {"parallelism": sum(sizes.values()), "sizes": sizes, "input_rate": load, "busy": min(1, load / rate / cores)}
        | {"true_input_rate": rate * cores, "output_rate": load, "lag": 0.0}
        for rate in rates
    ]
    first, second = metrics
    seen = job("first>second", time_s=time_s, first=first | {"arrival_rate": load}, second=second)
    return seen.model_copy(update={"node_types": types()})


def test_operators_that_share_nodes_get_one_mix_for_the_whole_job(prices):
    """100 records/s take all of a core of the first and a quarter of the second: 1.25 cores, 7.5 for 600."""
    policy = qescalor(prices=prices, season_s=0, share_nodes=True)
    decision, memory = policy.decide(two_operators(0, 600.0, {"small": 2}), EMPTY_MEMORY)
    assert decision.shared_nodes
    assert decision.sizes == {"first": {"large": 2}, "second": {"large": 2}}
    assert "job 2 small -> 2 large" in decision.reason
    assert decision.reason.endswith("shared by all 2 operators")
    decision, _ = policy.decide(two_operators(30, 600.0, {"small": 2}), json.loads(json.dumps(memory)))
    assert decision.is_hold
    apart, _ = qescalor(prices=prices, season_s=0).decide(two_operators(0, 600.0, {"small": 2}), EMPTY_MEMORY)
    assert apart.sizes == {"first": {"small": 2, "large": 1}, "second": {"small": 2}}


def test_sharing_needs_sizes():
    with pytest.raises(ValueError, match="share_nodes needs sizes to choose among, got prices 'one-size'"):
        qescalor(share_nodes=True)


def test_of_every_size_the_most_that_is_needed_before_one_comes():
    mixes = [{"a": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 4}]
    assert ahead_of_time(mixes, [-10, 20, 50], {"a": 20, "b": 10}) == {"a": 2}
    assert ahead_of_time(mixes, [-10, 20, 50], {"a": 20, "b": 60}) == {"a": 2, "b": 4}


@pytest.mark.parametrize(
    ("waited_s", "available", "expected"),
    [(10, True, {"a": 2}), (10, False, {"a": 1}), (400, True, {"a": 1}), (None, True, {"a": 1})],
)
def test_what_was_requested_counts_while_it_can_still_come(waited_s, available, expected):
    offered = {"a": NodeTypeMetrics(nodes=0, start_s=30, available=available)}
    assert expected_mix({"a": 2}, {"a": 1}, offered, waited_s) == expected


def test_of_a_size_that_cannot_be_started_what_is_on_its_way_comes_all_the_same():
    offered = {
        "a": NodeTypeMetrics(nodes=2, start_s=30, available=False, coming=1),
        "b": NodeTypeMetrics(nodes=0, start_s=30),
    }
    assert expected_mix({"a": 4, "b": 1}, {"a": 1}, offered, 10) == {"a": 2, "b": 1}
    assert most_to_be_had({"a": 1}, offered) == {"a": 2}


def test_an_instance_on_its_way_is_kept_where_another_of_its_size_was_refused(prices):
    """Two large were requested, and there was room for one: the plan goes on with that one, and releases nothing."""
    policy = qescalor(prices=prices, season_s=0, catch_up_s=20)
    decision, memory = policy.decide(window(0, 700.0, {"small": 1}), EMPTY_MEMORY)
    assert decision.sizes == {"op": {"large": 2}}
    without = types(large=True)
    without["large"] = without["large"].model_copy(update={"coming": 1})
    decision, memory = policy.decide(window(10, 700.0, {"small": 1}, node_types=without), memory)
    assert decision.sizes["op"]["large"] == 1
    assert decision.sizes["op"]["small"] > 1
    requested = decision.sizes["op"]
    decision, memory = policy.decide(window(20, 700.0, {"small": 1}, node_types=without), memory)
    assert decision.is_hold, "what was refused once is not planned around in every window"
    decision, _ = policy.decide(window(30, 700.0, requested, node_types=types(large=True)), memory)
    assert decision.is_hold


def test_a_contradicted_size_is_sampled_again_once_its_node_is_there(prices, tmp_path):
    """Both sizes do half of what their samples say; the large one is measured as soon as one has come."""
    path = tmp_path / "samples.json"
    sized = {size["name"]: size for size in SIZES}
    path.write_text(
        json.dumps({"op": [{"size": sized["small"], "rate": 100.0}, {"size": sized["large"], "rate": 400.0}]})
    )
    policy = qescalor(prices=prices, samples=str(path), season_s=0)
    decision, memory = policy.decide(window(0, 40.0, {"small": 1}, rate=50.0), EMPTY_MEMORY)
    assert memory["sampled"]["op"]["stale"] == [], "one window contradicts nothing"
    assert decision.is_hold
    decision, memory = policy.decide(window(EPOCH_S, 40.0, {"small": 1}, rate=50.0), memory)
    assert memory["sampled"]["op"]["stale"] == ["large"]
    assert decision.sizes == {"op": {"small": 1, "large": 1}}
    decision, memory = policy.decide(window(EPOCH_S + 30, 40.0, {"small": 1}, rate=50.0), memory)
    assert decision.is_hold
    assert memory["sampled"]["op"]["base_rate"] is not None, "its node is still to come"
    there = window(EPOCH_S + 45, 40.0, {"small": 1, "large": 1}, rate=50.0)
    metrics = there.operators["op"].model_copy(update={"size_rates": {"small": 50.0, "large": 170.0}})
    _, memory = policy.decide(there.model_copy(update={"operators": {"op": metrics}}), memory)
    assert memory["sampled"]["op"]["readings"] == [170.0]
    later = window(2 * EPOCH_S, 40.0, {"small": 1, "large": 1}, rate=50.0)
    metrics = later.operators["op"].model_copy(update={"size_rates": {"small": 50.0, "large": 190.0}})
    decision, memory = policy.decide(later.model_copy(update={"operators": {"op": metrics}}), memory)
    rates = {one["size"]["name"]: one["rate"] for one in memory["sampled"]["op"]["samples"]}
    assert rates == {"small": pytest.approx(50.0), "large": pytest.approx(180.0)}
    assert decision.sizes == {"op": {"small": 1}}


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([("small", 1, 0.0), ("large", 4, 0.0)], {"large": 1}),
        ([("small", 1, 0.05), ("large", 4, 0.0)], {"large": 1}),
        ([("small", 1, 0.05), ("twin", 1, 0.02), ("third", 1, 0.02)], {"twin": 4}),
    ],
)
def test_sizes_may_cost_nothing_and_be_alike(tmp_path, sizes, chosen):
    """390 records/s, where a core does 100."""
    path = tmp_path / "sizes.json"
    path.write_text(
        json.dumps([{"name": n, "cpu_cores": c, "memory_mb": 512, "price_per_hour": p} for n, c, p in sizes])
    )
    policy = qescalor(prices=str(path), season_s=0, startup_cost_s=0, shutdown_cost_s=0)
    decision, _ = policy.decide(window(0, 390.0, {"small": 1}, node_types={}), EMPTY_MEMORY)
    assert decision.sizes == {"op": chosen}


def test_shared_nodes_need_a_size_that_all_operators_are_known_on(prices, tmp_path):
    path = tmp_path / "performance.json"
    path.write_text(json.dumps({"first": {"small": 100.0}, "second": {"large": 400.0}}))
    policy = qescalor(prices=prices, season_s=0, share_nodes=True, performance=str(path))
    decision, _ = policy.decide(two_operators(0, 600.0, {"small": 1, "large": 1}), EMPTY_MEMORY)
    assert decision.is_hold
    assert decision.reason == "qescalor: nodes are shared and no size is known to all operators"
