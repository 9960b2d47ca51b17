import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sluice.learning.conservative import acquire, choose
from sluice.learning.history import History
from sluice.policies.conttune import ContTune, recall
from sluice.protocol import policies
from sluice.testing.steady_chain import Chain
from tests.policies.jobs import decisions, job

Q1_MAPPER = {
    1: [537531, 526027, 536475, 539868, 507965],
    2: [966817],
    4: [1829696],
    6: [2535503],
    7: [2936889],
    8: [3118478],
    10: [3721099],
    13: [4624714],
    15: [4967828],
    20: [6350677],
    21: [6465250],
    25: [7089387],
    26: [7476392],
}
"""Capacity by parallelism of the Nexmark Q1 mapper, published with ContTune (records/s)."""


KINDS = ("feasible-mean", "expected-improvement")


def history_of(curve, parallelisms):
    return History({p: (curve(p),) for p in parallelisms})


def power(rate, exponent):
    return lambda p: rate * p**exponent


def wavy(rate, exponent, wave, period):
    """More than one mode: capacity dips where instances collide."""
    return lambda p: rate * p**exponent * (1 + wave * np.sin(2 * np.pi * p / period))


@pytest.mark.parametrize("alpha", [1, 2, 3, 10])
def test_eleven_instances_of_the_published_mapper_for_four_million_records(alpha):
    history = History({p: tuple(map(float, found)) for p, found in Q1_MAPPER.items()})
    chosen = choose(history, 4e6, 99, alpha=alpha, acquisition="feasible-mean", p_max=26)
    assert chosen is not None
    assert chosen.parallelism == 11
    assert "by history" in chosen.why


def test_the_same_by_the_policy_with_that_history_in_its_memory():
    memory = {"history": {"map": {"samples": {str(p): found for p, found in Q1_MAPPER.items()}, "doubts": []}}}
    seen = job(
        "source>map",
        source={"parallelism": 1, "input_rate": 4e6, "arrival_rate": 4e6, "busy": 0.5, "lag": 0, "lag_rate": 0},
        map={"parallelism": 26, "input_rate": 4e6, "busy": 4e6 / 7476392},
    )
    decision, kept = ContTune().decide(seen, memory)
    assert decision.parallelism["map"] == 11
    assert json.loads(json.dumps(kept)) == kept


def test_alpha_zero_takes_only_what_was_measured_and_else_scales_linearly():
    history = History({p: tuple(map(float, found)) for p, found in Q1_MAPPER.items()})
    assert choose(history, 4e6, 14, alpha=0, acquisition="feasible-mean", p_max=26).parallelism == 14
    assert choose(history, 4.6e6, 99, alpha=0, acquisition="feasible-mean", p_max=26).parallelism == 13


@given(
    rate=st.floats(1e2, 1e6),
    exponent=st.floats(0.5, 1.0),
    share=st.floats(0.05, 0.95),
    seen=st.sets(st.integers(1, 40), min_size=1, max_size=6),
)
@settings(max_examples=25)
def test_on_a_concave_curve_it_settles_at_the_optimum_whatever_was_measured_before(rate, exponent, share, seen):
    curve = power(rate, exponent)
    chain = Chain({"source": power(1e9, 1.0), "map": curve}, load=share * curve(40))
    optimum = chain.optimum()["map"]
    assume(curve(optimum) > 1.01 * chain.load)  # closer than that, measured curves cannot be distinguished
    chain.memory = {"history": {"map": history_of(curve, seen).to_data()}}
    chain.settle(ContTune())
    assert chain.parallelism["map"] == optimum


@given(exponent=st.floats(0.6, 1.0), wave=st.floats(0.0, 0.25), period=st.floats(5.0, 20.0), share=st.floats(0.1, 0.9))
@settings(max_examples=40)
def test_on_a_curve_of_many_modes_a_full_history_gives_the_smallest_parallelism_that_suffices(
    exponent, wave, period, share
):
    curve = wavy(1000.0, exponent, wave, period)
    history = history_of(curve, range(1, 41))
    rate = share * curve(40)
    smallest = next(p for p in range(1, 41) if curve(p) >= rate and (p == 40 or curve(p + 1) >= rate))
    assert acquire(history, rate, acquisition="feasible-mean", p_max=40) == smallest


@pytest.mark.parametrize("seed", range(8))
def test_on_a_curve_of_many_modes_gaps_in_the_history_are_closed_until_the_choice_is_a_measured_one(seed):
    rng = np.random.default_rng(seed)
    curve = wavy(1000.0, rng.uniform(0.7, 1.0), rng.uniform(0.02, 0.12), rng.uniform(10, 20))
    chain = Chain({"source": power(1e9, 1.0), "map": curve}, load=rng.uniform(0.3, 0.8) * curve(30))
    chain.memory = {"history": {"map": history_of(curve, range(2, 32, 2)).to_data()}}
    chain.settle(ContTune())
    best = chain.optimum()["map"]
    feasible_with_neighbour = next(p for p in range(1, 40) if curve(p) >= chain.load and curve(p + 1) >= chain.load)
    assert chain.parallelism["map"] in (best, feasible_with_neighbour)


def test_the_big_phase_doubles_everyone_until_nothing_falls_behind_then_small_fits_all_at_once():
    curves = {"source": power(20.0, 1.0), "map": power(1.0, 1.0), "sink": power(10.0, 1.0)}
    chain = Chain(curves, load=11.0)
    chain.settle(ContTune())
    recommended = [dict(d.parallelism) for d in chain.decisions if not d.is_hold]
    everyone = dict.fromkeys
    assert recommended[:4] == [everyone(curves, 2), everyone(curves, 4), everyone(curves, 8), everyone(curves, 16)]
    assert chain.decisions[0].reason.startswith("conttune: Big phase, all to 2: source: lag grows by")
    assert recommended[4:] == [{"source": 1, "map": 11, "sink": 2}]


def test_the_big_phase_starts_at_the_largest_parallelism_in_the_history():
    chain = Chain({"source": power(20.0, 1.0), "map": power(1.0, 1.0)}, load=11.0)
    chain.memory = {"p_max": 13, "history": {}}
    chain.step(ContTune())
    assert chain.parallelism == {"source": 13, "map": 13}


def test_a_load_that_comes_again_takes_one_reconfiguration_even_upwards_and_after_a_restart():
    chain = Chain({"source": power(1e3, 1.0), "map": power(5.0, 0.85), "sink": power(1e3, 1.0)}, load=20.0)
    for chain.load in (20.0, 50.0, 20.0):
        chain.settle(ContTune())
    low = dict(chain.parallelism)
    chain.memory = json.loads(json.dumps(chain.memory))
    chain.load, before = 50.0, chain.reconfigurations
    chain.settle(ContTune())
    assert chain.reconfigurations == before + 1
    assert chain.parallelism["map"] == chain.optimum()["map"] > low["map"]
    assert any("real rates known" in d.reason for d in chain.decisions)


def test_a_new_load_needs_no_big_phase_once_rates_are_known_to_grow_with_the_load():
    chain = Chain({"source": power(1e3, 1.0), "map": power(5.0, 0.85)}, load=20.0, selectivity={"source": 0.5})
    for chain.load in (80.0, 20.0, 30.0):
        chain.settle(ContTune())
    chain.load, before = 60.0, chain.reconfigurations
    chain.settle(ContTune())
    assert chain.reconfigurations == before + 1
    assert chain.parallelism["map"] == chain.optimum()["map"]


def test_rates_that_do_not_grow_with_the_load_are_not_guessed():
    levels = [
        {"loads": {"s": 10.0}, "rates": {"s": 10.0, "join": 1.0}},
        {"loads": {"s": 20.0}, "rates": {"s": 20.0, "join": 4.0}},
    ]
    assert recall(levels, {"s": 40.0}) == {}
    assert recall(levels, {"s": 20.5}) == {"s": 20.0, "join": 4.0}
    agreed = [levels[0], {"loads": {"s": 20.0}, "rates": {"s": 20.0, "join": 2.0}}]
    assert recall(agreed, {"s": 40.0}) == {"s": 40.0, "join": 4.0}
    two_sources = [{"loads": {"s": 10.0, "t": 1.0}, "rates": {"s": 10.0}}] * 2
    assert recall(two_sources, {"s": 40.0, "t": 1.0}) == {}


def test_code_that_got_slower_is_noticed_and_its_old_history_forgotten():
    chain = Chain({"source": power(1e3, 1.0), "map": power(5.0, 0.9)}, load=40.0)
    for chain.load in (40.0, 20.0, 30.0):
        chain.settle(ContTune())
    chain.curves = {"source": power(1e3, 1.0), "map": power(2.0, 0.9)}
    for chain.load in (30.0, 20.0, 40.0):
        chain.settle(ContTune())
        assert chain.parallelism["map"] == chain.optimum()["map"]
    assert any("forgotten" in d.reason for d in chain.decisions)
    newest = History.from_data(chain.memory["history"]["map"])
    assert all(found == pytest.approx(2.0 * p**0.9) for p in newest.samples for found in newest.samples[p])


def test_one_odd_window_changes_nothing():
    history = History({4: (100.0, 101.0)})
    doubted = history.add(4, 40.0, tolerance=0.25)
    assert doubted.in_doubt
    assert doubted.samples == history.samples
    assert doubted.add(4, 99.0, tolerance=0.25).samples == {4: (100.0, 101.0, 99.0)}
    assert doubted.add(4, 41.0, tolerance=0.25).samples == {4: (40.0, 41.0)}


def test_expected_improvement_dares_what_the_mean_rules_out_until_it_was_measured():
    seen = {4: (400.0,), 8: (760.0,), 12: (1085.0,), 16: (1400.0,)}
    load = 1.003 * float(History(seen).fit(reach=16).predict([11])[0][0])
    chosen = {kind: acquire(History(seen), load, acquisition=kind, p_max=16) for kind in KINDS}
    assert chosen == {"feasible-mean": 12, "expected-improvement": 11}
    tried = History({**seen, 11: (0.997 * load,)})
    assert acquire(tried, load, acquisition="expected-improvement", p_max=16) == 12


def test_expected_improvement_tries_fewer_instances_than_the_mean_allows_but_stops():
    curve = power(5.0, 0.85)
    chain = Chain({"source": power(1e3, 1.0), "map": curve}, load=40.0, noise=0.01)
    chain.settle(ContTune(acquisition="expected-improvement"), most=80)
    assert abs(chain.parallelism["map"] - chain.optimum()["map"]) <= 1


@pytest.mark.parametrize("name", ["conttune", "big-ds2", "random-search"])
def test_at_the_largest_parallelism_it_says_so_and_goes_no_further(name):
    policy = policies.create(name, {"max_parallelism": 4})
    chain = Chain({"source": power(1e3, 1.0), "map": power(1.0, 1.0)}, load=50.0)
    for _ in range(30):
        chain.step(policy)
    assert max(chain.parallelism.values()) <= 50
    if name != "big-ds2":
        assert max(chain.parallelism.values()) <= 4


def test_big_ds2_goes_up_at_once_and_down_by_ds2():
    chain = Chain({"source": power(1e3, 1.0), "map": power(5.0, 0.85)}, load=30.0)
    chain.settle(policies.create("big-ds2"))
    assert chain.curves["map"](chain.parallelism["map"]) >= 30.0
    assert chain.parallelism["map"] <= chain.optimum()["map"] + 1


def test_random_search_keeps_the_cheapest_that_kept_up_and_is_the_same_for_the_same_seed():
    ends = []
    for _ in range(2):
        chain = Chain({"source": power(1e3, 1.0), "map": power(5.0, 0.85)}, load=12.0)
        for _ in range(25):
            chain.step(policies.create("random-search", {"seed": 7}))
        ends.append(chain.parallelism)
    assert ends[0] == ends[1]
    assert chain.share() == 1.0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"alpha": -1}, "alpha must be 0 or more instances, got -1"),
        ({"acquisition": "ucb"}, "acquisition"),
        ({"forget_beyond": 1.5}, "forget_beyond must be in"),
        ({"max_parallelism": 0}, "max_parallelism must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_named(settings, says):
    with pytest.raises(ValueError, match=says):
        policies.create("conttune", settings)


def test_batches_that_fell_into_a_short_window_do_not_move_ours_and_move_the_papers():
    """Each operator of a job that keeps up shows 0.8 or 1.2 of its load, as its batches happened to end."""

    def window(number, split, count):
        return job(
            "source>split",
            "split>count",
            time_s=5.0 * number,
            interval_s=5.0,
            source={"parallelism": 1, "arrival_rate": 800, "lag": 0, "lag_rate": 0} | rates(800, 1600, 800),
            split={"parallelism": 5} | rates(800 * split, 1000, 2400 * split),
            count={"parallelism": 4} | rates(2400 * count, 3000, 0),
        )

    def rates(read, able, emitted):
        return {"input_rate": read, "busy": read / able, "output_rate": emitted, "backpressure": 0.0}

    windows = [window(number, *shares) for number, shares in enumerate([(1, 1), (1.2, 0.8), (0.8, 1.2)] * 3)]
    ours, papers = (
        {tuple(found.parallelism.values()) for found in decisions(policy, windows)}
        for policy in (ContTune(), ContTune(real_rates="received"))
    )
    assert len(ours) < len(papers)
    assert len(ours) <= 2
