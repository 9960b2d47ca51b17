import itertools
import json

import numpy as np
import pytest

from sluice.dataflow.budget import within_budget
from sluice.learning.capacity_tracking import CapacityEstimate, exploration_weight, track
from sluice.policies.dragster import Dragster
from sluice.protocol import policies
from sluice.testing.steady_chain import Chain
from tests.policies.jobs import job

METHODS = ["saddle", "gradient"]


def word_count(load=100.0, noise=0.0, seed=0):
    """A map that splits lines into eight words, a shuffle that counts them."""
    curves = {"map": lambda p: 25.0 * p**0.9, "shuffle": lambda p: 120.0 * p**0.85}
    return Chain(curves, load=load, selectivity={"map": 8.0}, noise=noise, seed=seed)


def run(chain, policy, slots, loads=(100.0,), every=1000):
    """Regret and fit against the true curves, slot by slot, summed up."""
    regret, fit = [], []
    for slot in range(slots):
        chain.load = loads[(slot // every) % len(loads)]
        regret.append((1 - chain.share()) * chain.load)
        fit.append(sum(max(0.0, d - chain.curves[n](chain.parallelism[n])) for n, d in chain.demands().items()))
        chain.step(policy)
    return np.cumsum(regret), np.cumsum(fit)


def exponent(summed):
    """Of t in `sum ~ t^exponent`, fitted over all but the first slots."""
    t = np.arange(1, len(summed) + 1)
    return float(np.polyfit(np.log(t[20:]), np.log(summed[20:]), 1)[0])


@pytest.mark.parametrize("method", METHODS)
def test_it_finds_the_optimum_and_comes_back_to_it_after_a_change_of_load(method):
    chain = word_count()
    for chain.load in (100.0, 60.0, 100.0):
        for _ in range(20):
            chain.step(Dragster(method=method))
        best = chain.optimum()
        assert chain.share() == 1.0
        assert sum(chain.parallelism.values()) <= sum(best.values()) + 1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("loads", "every"), [((100.0,), 1000), ((100.0, 60.0), 100)])
def test_regret_and_fit_of_a_thousand_slots_grow_more_slowly_than_time(method, loads, every, capsys):
    chain = word_count(noise=0.02)
    regret, fit = run(chain, Dragster(method=method), 1000, loads, every)
    with capsys.disabled():
        print(f"\n{method}, load {loads}: regret ~ t^{exponent(regret):.2f}, fit ~ t^{exponent(fit):.2f}", end=" ")
    assert exponent(regret) < 0.9
    assert exponent(fit) < 0.9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [2, 5, 9, 12, 30])
def test_the_budget_is_never_exceeded_and_used_where_it_helps_most(method, budget):
    chain = word_count(noise=0.02)
    chain.parallelism = {"map": 6, "shuffle": 6}
    policy = Dragster(method=method, budget=budget)
    for _ in range(40):
        chain.step(policy)
        assert sum(chain.parallelism.values()) <= budget
    best = max(
        min(1.0, chain.curves["map"](m) / 100.0, chain.curves["shuffle"](s) / 800.0)
        for m in range(1, 11)
        for s in range(1, 11)
        if m + s <= budget
    )
    assert chain.share() >= 0.97 * best


def test_regret_and_fit_are_in_the_decision_and_never_shrink_below_what_was_missed():
    chain = word_count()
    for _ in range(8):
        chain.step(Dragster())
    measures = [decision.measures for decision in chain.decisions]
    missed_words_per_s = (100.0 - 15.0) * 8.0
    assert measures[0]["regret_records"] == pytest.approx(missed_words_per_s * 600.0)
    assert all(a["regret_records"] <= b["regret_records"] for a, b in itertools.pairwise(measures))
    assert measures[-1]["fit_records"] < measures[0]["fit_records"]


def test_shortage_makes_the_saddle_point_overshoot_once_and_the_gradient_climb():
    saddle, gradient = word_count(), word_count()
    saddle.step(Dragster(method="saddle"))
    gradient.step(Dragster(method="gradient"))
    assert saddle.parallelism == {"map": 10, "shuffle": 10}
    assert all(1 < count < 10 for count in gradient.parallelism.values())


@pytest.mark.parametrize("method", METHODS)
def test_what_was_learned_survives_a_restart(method):
    chain = word_count()
    policy = Dragster(method=method)
    for chain.load in (100.0, 60.0):
        for _ in range(20):
            chain.step(policy)
    assert json.loads(json.dumps(chain.memory)) == chain.memory


def test_throughput_functions_can_be_given_and_replace_what_is_seen():
    text = json.dumps({"map>shuffle": {"kind": "linear", "k": [16.0]}})
    chain = word_count(load=50.0)
    chain.parallelism = {"map": 10, "shuffle": 10}
    for _ in range(5):
        chain.step(Dragster(functions=text))
    assert chain.parallelism["shuffle"] == 10  # 50 lines/s would take 5, were they not announced as 16 words each


def test_a_window_that_emits_nothing_is_sized_by_what_it_takes_in():
    busy = {"parallelism": 2, "input_rate": 1000, "busy": 0.4, "lag": 0, "lag_rate": 0}
    seen = job(
        "source>window",
        "window>sink",
        source={**busy, "arrival_rate": 1000, "output_rate": 1000},
        window={**busy, "busy": 1.0, "output_rate": 0},
        sink={"parallelism": 1, "input_rate": 0, "busy": 0.0},
    )
    decision, _ = Dragster().decide(seen, {})
    assert decision.parallelism.get("window", 2) >= 2


def test_the_confidence_weight_is_that_of_the_paper():
    assert exploration_weight(10, 3, 2.0) == pytest.approx(2 * np.log(10 * 9 * np.pi**2 * 2 / 6))


def test_what_surely_falls_short_is_not_chosen_however_near_it_comes():
    mean = np.array([50.0, 96.0, 130.0])
    tried = CapacityEstimate(mean, np.full(3, 0.1), np.array([True, True, True]))
    assert track(tried, 100.0, 3, slot=5, delta=2.0) == 3
    untried = CapacityEstimate(mean, np.array([0.1, 5.0, 0.1]), np.array([True, False, True]))
    assert track(untried, 100.0, 3, slot=5, delta=2.0) == 2


def test_a_budget_goes_to_whoever_covers_least():
    capacity = {"slow": 1.0, "fast": 4.0}
    given = within_budget({"slow": 8, "fast": 8}, 10, lambda name, x: capacity[name] * x / 8.0)
    assert given == {"slow": 8, "fast": 2}
    assert within_budget({"slow": 3, "fast": 3}, 1, lambda *_: 0.0) == {"slow": 1, "fast": 1}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"method": "newton"}, "method"),
        ({"delta": 1.0}, "delta must be above 1, got 1.0"),
        ({"budget": 0}, "budget must be at least 1 slot, got 0"),
        ({"functions": "nonsense"}, "functions must be JSON"),
        ({"functions": '{"a": {}}'}, "functions must map"),
        ({"functions": '{"a>b": {"kind": "cubic"}}'}, "function of a>b"),
    ],
)
def test_bad_settings_are_named(settings, says):
    with pytest.raises(ValueError, match=says):
        policies.create("dragster", settings)
