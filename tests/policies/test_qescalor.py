"""QEScalor's stories: planning ahead, mixing sizes, reacting when the forecast fails."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sluice.errors import BadInputError
from sluice.learning.instance_sizes import EXAMPLE
from sluice.model import Recommendation
from sluice.protocol import EMPTY_MEMORY, policies
from sluice.testing.observations import steady_run
from tests.policies.jobs import decisions, job, recommended

EPOCH_S = 60.0
DAY = 12
"""Epochs until the load repeats itself."""


def qescalor(**settings):
    plain = {"epoch_s": EPOCH_S, "season_s": EPOCH_S * DAY, "target_utilisation": 1.0, "max_instances": 50}
    return policies.create("qescalor", plain | settings)


def window(epoch, load, *, parallelism=1, rate=100.0, part=0.0, lag=0.0, sizes=None, cores=None):
    """One operator that reads `load` records/s, each of its (one-core) instances able to take `rate`."""
    capacity = rate * (cores or parallelism)
    busy = min(1.0, load / capacity)
    metrics = {
        "parallelism": parallelism,
        "arrival_rate": load,
        "input_rate": min(load, capacity),
        "busy": busy,
        "true_input_rate": capacity,
        "lag": lag,
        "sizes": sizes,
    }
    return job(time_s=EPOCH_S * (epoch + part), interval_s=15.0, op=metrics)


def day_load(epoch):
    return 1000 + 600 * np.sin(2 * np.pi * epoch / DAY)


def run(policy, loads, parallelism=1):
    """One window per epoch; every recommendation is applied at once."""
    memory, made = EMPTY_MEMORY, []
    for epoch, load in enumerate(loads):
        decision, memory = policy.decide(window(epoch, load, parallelism=parallelism), memory)
        memory = json.loads(json.dumps(memory))
        parallelism = decision.parallelism.get("op", parallelism)
        made.append((parallelism, decision))
    return made


def test_without_a_forecast_it_plans_for_the_load_of_now():
    decision = decisions(qescalor(), [window(0, 730)])[0]
    assert decision.parallelism == {"op": 8}
    assert decision.sizes == {}
    assert "no forecast yet" in decision.reason


def test_a_known_day_is_prepared_before_the_load_rises():
    """Every epoch starts with the load of the one before; after three days the rise in it is already planned for."""
    policy, memory, parallelism, planned = qescalor(band=0.0), EMPTY_MEMORY, 1, []
    for epoch in range(4 * DAY):
        for part, load in ((0.0, day_load(epoch - 1)), (0.5, day_load(epoch))):
            decision, memory = policy.decide(window(epoch, load, part=part, parallelism=parallelism), memory)
            parallelism = decision.parallelism.get("op", parallelism)
            if part == 0.0:
                planned.append((epoch, parallelism))
    last_day = planned[3 * DAY :]
    assert all(count * 100 >= 0.97 * day_load(epoch) for epoch, count in last_day)
    assert max(count for _, count in last_day) <= 17


def test_a_dip_shorter_than_a_restart_is_worth_is_ridden_out():
    loads = [1000, 1000, 1000, 1000, 1000, 400] * 8
    keeps = run(qescalor(season_s=6 * EPOCH_S, startup_cost_s=600, band=0.0), loads)
    drops = run(qescalor(season_s=6 * EPOCH_S, startup_cost_s=0, shutdown_cost_s=0, band=0.0), loads)
    assert keeps[-1][0] == 10
    assert drops[-1][0] < 10


def test_a_forecast_that_fails_is_not_used():
    chance = np.random.default_rng(3)
    made = run(qescalor(max_error=0.2), chance.uniform(100, 2000, 40))
    assert "above 20%: reacts" in made[-1][1].reason


def test_within_an_epoch_it_holds_unless_the_load_outgrows_the_plan():
    policy = qescalor(band=0.0, catch_up_s=10.0)
    first, calm, surge = decisions(
        policy,
        [
            window(0, 500),
            window(0, 510, part=0.3, parallelism=5),
            window(0, 900, part=0.6, parallelism=5),
        ],
    )
    assert first.parallelism == {"op": 5}
    assert calm.is_hold
    assert surge.parallelism == {"op": 9}
    assert "op fell short" in surge.reason


def test_what_it_did_is_given_time_before_it_acts_again_in_the_same_epoch():
    policy = qescalor(band=0.0, catch_up_s=45.0)
    story = [window(0, 500), window(0, 900, part=0.3, parallelism=5), window(0, 900, part=0.9, parallelism=5)]
    assert [decision.is_hold for decision in decisions(policy, story)] == [False, True, False]


def test_backlog_is_planned_for_within_its_time():
    assert recommended(qescalor(catch_up_s=10.0), window(0, 500, lag=2000)) == {"op": 7}


def test_mixes_sizes_and_names_every_operators_mix():
    decision = decisions(qescalor(prices="example"), [window(0, 730, parallelism=2)])[0]
    cores = {"nano": 0.5, "micro": 1, "small": 1.5, "medium": 2, "large": 3, "xlarge": 4}
    mix = decision.sizes["op"]
    assert decision.parallelism == {"op": sum(mix.values())}
    assert 7.3 <= sum(cores[size] * count for size, count in mix.items()) <= 8


def test_reads_the_running_sizes_from_the_observation():
    """Two instances of four cores take 800 records/s: that is 100 per core, not 400 per instance."""
    running = {"xlarge": 2}
    seen = window(0, 790, parallelism=2, cores=8, sizes=running)
    decision, memory = qescalor(prices="example").decide(seen, EMPTY_MEMORY)
    assert memory["factors"]["op"] == pytest.approx(100)
    assert decision.is_hold


def test_measured_performance_decides_which_size_pays(tmp_path):
    path = tmp_path / "rates.json"
    sizes = {"nano": 10, "micro": 100, "small": 110, "medium": 120, "large": 130, "xlarge": 140}
    path.write_text(json.dumps({"op": sizes}))
    decision = decisions(qescalor(prices="example", performance=str(path)), [window(0, 500, parallelism=2)])[0]
    assert decision.sizes == {"op": {"micro": 5}}


def test_production_that_is_slower_than_the_profile_gets_more_instances():
    policy = qescalor(band=0.0)
    fast, _ = policy.decide(window(0, 1000, rate=100.0), EMPTY_MEMORY)
    slow, _ = policy.decide(window(0, 1000, rate=50.0), EMPTY_MEMORY)
    assert slow.parallelism["op"] == 2 * fast.parallelism["op"]


def test_downstream_operators_are_planned_by_what_reaches_them():
    chain = job(
        "a>b",
        a={"parallelism": 1, "arrival_rate": 100, "input_rate": 100, "output_rate": 300, "busy": 0.5},
        b={"parallelism": 1, "input_rate": 300, "busy": 1.0},
    )
    assert recommended(qescalor(target_utilisation=0.75), chain) == {"a": 1, "b": 2}


def test_never_recommends_more_than_allowed():
    assert recommended(qescalor(max_instances=3), window(0, 1e9)) == {"op": 3}


def test_many_sizes_and_a_huge_load_still_get_an_answer():
    decision = decisions(qescalor(prices="example", max_instances=200), [window(0, 30_000, parallelism=3)])[0]
    assert isinstance(decision, Recommendation)
    assert decision.parallelism["op"] <= 200


def test_every_price_table_is_planned_with_on_a_steady_job():
    for prices in ("one-size", "example"):
        for decision in decisions(qescalor(prices=prices), steady_run()):
            assert decision.sizes.keys() <= {"source", "map"}
            if decision.sizes:
                assert decision.parallelism == {op: sum(mix.values()) for op, mix in decision.sizes.items()}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"epoch_s": 0}, "epoch_s must be above 0, got 0"),
        ({"target_utilisation": 1.2}, "got 1.2"),
        ({"max_error": -1}, "got -1"),
        ({"prices": "nowhere.json"}, "nowhere.json"),
        ({"performance": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(BadInputError, match=words):
        qescalor(**settings)


def test_a_performance_file_must_hold_rates(tmp_path):
    path = tmp_path / "rates.json"
    path.write_text('{"op": {"micro": -5}}')
    with pytest.raises(BadInputError, match="micro"):
        qescalor(performance=str(path))


@pytest.mark.parametrize(("prices", "expected"), [("one-size", False), ("example", True)])
def test_engines_can_see_beforehand_whether_sizes_will_be_recommended(prices, expected):
    policy = qescalor(prices=prices)
    assert policy.recommends_sizes is expected
    assert bool(decisions(policy, [window(0, 730, parallelism=2)])[0].sizes) is expected


def test_the_command_line_shows_the_sizes(tmp_path, capsys):
    from sluice.cli import main

    path = tmp_path / "observation.json"
    path.write_text(window(0, 730, parallelism=2).to_json())
    with pytest.raises(SystemExit) as ended:
        main(["decide", "--policy", "qescalor", "--set", "prices=example", str(path)])
    assert ended.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    assert sum(answer["sizes"]["op"].values()) == answer["parallelism"]["op"]


SAMPLED = {"nano": 50.0, "micro": 100.0, "small": 150.0, "medium": 200.0, "large": 300.0, "xlarge": 400.0}


def sampled_policy(tmp_path, **settings):
    pytest.importorskip("sklearn")
    path = tmp_path / "samples.json"
    samples = [{"size": size.to_data(), "rate": SAMPLED[size.name]} for size in EXAMPLE]
    path.write_text(json.dumps({"op": samples}))
    free = {"startup_cost_s": 0.0, "shutdown_cost_s": 0.0}
    return qescalor(samples=str(path), prices="example", season_s=0.0, band=0.0, max_error=0.0, **free, **settings)


def capacity(mix, rates):
    return sum(count * rates[size] for size, count in mix.items())


def live(policy, rates_at, epochs, load=900.0, windows=4):
    """Every recommendation applied at once; `rates_at(epoch)` is what an instance of each size does."""
    memory, mix, mixes = EMPTY_MEMORY, {"micro": 10}, []
    for epoch in range(epochs):
        for part in range(windows):
            rate = capacity(mix, rates_at(epoch))
            seen = window(
                epoch,
                load,
                part=part / windows,
                parallelism=sum(mix.values()),
                rate=rate / sum(mix.values()),
                sizes=mix,
            )
            decision, memory = policy.decide(seen, memory)
            memory = json.loads(json.dumps(memory))
            mix = decision.sizes.get("op", mix)
        mixes.append(mix)
    return mixes, memory


def test_while_production_agrees_with_the_samples_nothing_is_sampled_again(tmp_path):
    mixes, memory = live(sampled_policy(tmp_path), lambda _: {size: 1.1 * rate for size, rate in SAMPLED.items()}, 6)
    assert memory["sampled"]["op"]["stale"] == []
    assert {sample["rate"] for sample in memory["sampled"]["op"]["samples"]} == set(SAMPLED.values())
    assert mixes[-1] == mixes[-3]


def test_once_production_contradicts_the_samples_every_other_size_is_sampled_again_one_per_epoch(tmp_path):
    """Large instances become slow and small ones stay: scaling all samples alike would never find that out."""
    slowed = {size: rate * (1.0 if size in ("nano", "micro", "small") else 0.5) for size, rate in SAMPLED.items()}
    mixes, memory = live(sampled_policy(tmp_path), lambda epoch: SAMPLED if epoch < 3 else slowed, 30)
    assert mixes[2] == {"large": 3}
    found = memory["sampled"]["op"]
    assert found["stale"] == []
    rates = {sample["size"]["name"]: sample["rate"] for sample in found["samples"]}
    factor = memory["factors"]["op"]
    assert {size: factor * rate for size, rate in rates.items()} == pytest.approx(slowed, rel=0.1)
    assert set(mixes[-1]) <= {"nano", "micro", "small"}
    assert capacity(mixes[-1], slowed) >= 900.0


def test_samples_and_performance_exclude_each_other(tmp_path):
    path = tmp_path / "samples.json"
    path.write_text("{}")
    with pytest.raises(BadInputError, match="exclude each other"):
        qescalor(samples=str(path), performance=str(path))


@pytest.mark.parametrize(
    ("content", "words"), [("{", "no JSON"), ('{"op": []}', "'op' has no sample"), ('{"op": [1]}', "samples file")]
)
def test_bad_samples_are_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "samples.json"
    path.write_text(content)
    with pytest.raises(BadInputError, match=words):
        qescalor(samples=str(path))


def test_a_slow_time_of_day_is_planned_for_once_it_is_known():
    """The operator does half as much in the last third of every day; the load never changes."""

    def planned(**settings):
        policy, memory, parallelism, made = qescalor(band=0.0, max_error=0.5, **settings), EMPTY_MEMORY, 10, []
        for epoch in range(6 * DAY):
            slow = epoch % DAY >= 8
            for part in (0.0, 0.3, 0.6):
                seen = window(epoch, 1000, part=part, parallelism=parallelism, rate=50.0 if slow else 100.0)
                decision, memory = policy.decide(seen, memory)
                if part == 0.0 and epoch % DAY == 8:
                    made.append(parallelism)
                parallelism = decision.parallelism.get("op", parallelism)
        return made[-1]

    assert planned(forecast_speed=True, startup_cost_s=0.0, shutdown_cost_s=0.0, horizon=2) >= planned()
