"""DS2 against numbers worked out by hand from its formula (thesis 4.3 and 6.7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.model import Observation
from sluice.policies.ds2 import Ds2
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import decisions, job, recommended

EXACT = Ds2(over_provisioning=1.0)


def op(parallelism: int, input_rate: float, output_rate: float, busy: float | None, **more: Any) -> dict[str, Any]:
    return {
        "parallelism": parallelism,
        "input_rate": input_rate,
        "output_rate": output_rate,
        "busy": busy,
        **more,
    }


def chain(arrival_rate: float = 1000.0, **at_map: Any) -> Observation:
    """One instance of source does 1000 rec/s, one of map 250; map halves the stream; one of sink does 400."""
    return job(
        "source>map",
        "map>sink",
        source=op(1, 500, 500, 0.5, arrival_rate=arrival_rate),
        map=op(2, 500, 250, 1.0) | at_map,
        sink=op(1, 250, 0, 0.625),
    )


def test_a_chain_by_hand():
    # source 1000/1000 = 1; map 1000/250 = 4; sink 1000 * 0.5 / 400 = 1.25
    assert recommended(EXACT, chain()) == {"source": 1, "map": 4, "sink": 2}


def test_the_factor_counts_before_rounding_and_is_not_passed_on():
    # 1 * 1.2 -> 2, 4 * 1.2 = 4.8 -> 5, 1.25 * 1.2 = 1.5 -> 2; passed on, map would need 4.8 * 1.2 = 5.76 -> 6
    assert recommended(Ds2(), chain()) == {"source": 2, "map": 5, "sink": 2}


def test_a_factor_that_gives_a_whole_number_adds_no_instance():
    # 10 * 1.1 is 11.000000000000002 in floating point
    observation = job(source=op(10, 1000, 1000, 1.0, arrival_rate=1000))
    assert recommended(Ds2(over_provisioning=1.1), observation) == {"source": 11}


def test_two_sources_into_one_operator():
    # join takes 300 * 1 + 400 * 0.5 = 500 rec/s; one instance does 100 / 0.5 = 200: 2.5 -> 3
    observation = job(
        "bids>join",
        "people>join",
        bids=op(1, 60, 60, 0.2, arrival_rate=300),
        people=op(1, 80, 40, 0.2, arrival_rate=400),
        join=op(1, 100, 10, 0.5),
    )
    assert recommended(EXACT, observation) == {"bids": 1, "people": 1, "join": 3}


@pytest.mark.parametrize(
    ("source", "left", "right"),
    [
        pytest.param({"output_rates": {"left": 900, "right": 100}}, {}, {}, id="the engine tells the edges apart"),
        pytest.param({}, {}, {}, id="by what arrives at each successor"),
        pytest.param({}, {"input_rate": 600, "busy": 0.3, "lag_rate": 300}, {}, id="what piles up arrived as well"),
    ],
)
def test_a_fan_out_uses_the_rate_of_each_edge(source, left, right):
    # twice the load: left gets 1800 at 2000 each -> 1, right 200 at 50 each -> 4. A copied total: 2 and 40.
    observation = job(
        "source>left",
        "source>right",
        source=op(1, 1000, 1000, 0.5, arrival_rate=2000) | source,
        left=op(1, 900, 900, 0.45) | left,
        right=op(2, 100, 100, 1.0) | right,
    )
    assert recommended(EXACT, observation) == {"source": 1, "left": 1, "right": 4}


def test_of_several_predecessors_a_fan_out_gets_what_the_certain_ones_leave():
    # 'merge' takes 500: 200 from b for certain, so 300 from a, whose other edge takes 700.
    # Twice the load of a and the same of b: merge 600 + 200 = 800 at 250 each: 3.2 -> 4
    observation = job(
        "a>other",
        "a>merge",
        "b>merge",
        a=op(1, 1000, 1000, 0.5, arrival_rate=2000),
        b=op(1, 200, 200, 0.5, arrival_rate=200),
        other=op(1, 700, 0, 0.1),
        merge=op(2, 500, 0, 1.0),
    )
    assert recommended(EXACT, observation) == {"a": 1, "b": 1, "other": 1, "merge": 4}


def test_two_fan_outs_into_one_operator_share_in_proportion_to_their_outputs():
    # merge takes 400 from outputs of 600 and 200: 300 from a, 100 from b. Only a doubles: 600 + 100 = 700 at 100: 7
    observation = job(
        "a>merge",
        "a>left",
        "b>merge",
        "b>right",
        a=op(1, 600, 600, 0.5, arrival_rate=1200),
        b=op(1, 200, 200, 0.5, arrival_rate=200),
        merge=op(4, 400, 0, 1.0),
        left=op(1, 300, 0, 0.1),
        right=op(1, 100, 0, 0.1),
    )
    assert recommended(EXACT, observation)["merge"] == 7


def test_exact_numbers_are_passed_on_not_rounded_ones():
    # map needs 4.004 -> 5 instances. Passing on what 5 instances emit (625) would ask sink for 1.5625 -> 2;
    # what really flows is 1001 * 0.5 = 500.5, of 500.5 each: exactly 1.
    observation = job(
        "source>map",
        "map>sink",
        source=op(2, 500, 500, 0.5, arrival_rate=1001),
        map=op(2, 500, 250, 1.0),
        sink=op(1, 250.25, 0, 0.5),
    )
    assert recommended(EXACT, observation) == {"source": 3, "map": 5, "sink": 1}


@pytest.mark.parametrize("busy", [None, 0.0])
def test_a_busy_share_unknown_or_zero_keeps_the_operator_and_passes_the_load_on(busy):
    decision, _ = EXACT.decide(chain(busy=busy), EMPTY_MEMORY)
    assert decision.parallelism == {"source": 1, "map": 2, "sink": 2}
    assert "kept, rate or load unknown: map" in decision.reason


def test_no_input_is_unknown_and_the_last_seen_selectivity_carries_the_load():
    quiet = {"input_rate": 0.0, "output_rate": 0.0, "busy": 0.0}
    first, second = decisions(EXACT, [chain(), chain(arrival_rate=2000.0, **quiet)])
    assert first.parallelism["sink"] == 2  # 1000 * 0.5 / 400 = 1.25
    assert second.parallelism == {"source": 2, "map": 2, "sink": 3}  # 2000 * 0.5 / 400 = 2.5
    assert second.reason.endswith("; selectivity as last seen at map")


def test_what_was_never_seen_is_not_guessed_downstream():
    never = {"input_rate": 0.0, "output_rate": 0.0, "busy": 0.0}
    assert recommended(EXACT, chain(arrival_rate=4000.0, **never)) == {"source": 4, "map": 2, "sink": 1}


def test_true_rates_alone_are_enough():
    observation = job(
        "source>map",
        source={"parallelism": 1, "true_input_rate": 1000, "true_output_rate": 2000, "arrival_rate": 1500},
        map={"parallelism": 2, "true_input_rate": 1200},
    )
    # source 1.5 -> 2; map 3000 / 600 = 5
    assert recommended(EXACT, observation) == {"source": 2, "map": 5}


def fan_out(**source: Any) -> Observation:
    """One instance of left does 1000 rec/s, one of right 100; true rates say 4 out per record in, counts say 2."""
    return job(
        "source>left",
        "source>right",
        source=op(1, 500, 1000, 0.5, arrival_rate=1000, true_input_rate=1000, true_output_rate=4000) | source,
        left=op(1, 900, 0, 0.9),
        right=op(1, 100, 0, 1.0),
    )


def test_selectivity_is_the_ratio_of_true_rates_where_they_differ_from_counts():
    # counts halve the stream, true rates double it
    true = {"true_input_rate": 500, "true_output_rate": 1000}
    assert recommended(EXACT, chain())["sink"] == 2  # 1000 * 0.5 / 400
    assert recommended(EXACT, chain(**true))["sink"] == 5  # 1000 * 2 / 400


@pytest.mark.parametrize("missing", ["true_input_rate", "true_output_rate"])
def test_counts_give_the_selectivity_where_one_true_rate_is_unknown(missing):
    # a factor of 1000 apart, should one ever be divided by the other kind
    true = {"true_input_rate": 500, "true_output_rate": 500_000, missing: None}
    assert recommended(EXACT, chain(**true))["sink"] == 2


@pytest.mark.parametrize(
    ("source", "left", "right"),
    [
        pytest.param({"output_rates": {"left": 900, "right": 100}}, 4, 4, id="reported: 4000 as 9 to 1"),
        pytest.param({"output_rates": {"left": 500, "right": 500}}, 2, 20, id="reported: 4000 in halves"),
        pytest.param({"output_rates": {"left": 1000, "right": 1000}}, 4, 40, id="reported: 4000 copied to both"),
        pytest.param({}, 4, 4, id="by what arrives at each successor"),
        pytest.param({"true_output_rate": None, "output_rate": 1000}, 2, 2, id="counts alone: 2000 as 9 to 1"),
    ],
)
def test_edges_decide_how_a_fan_out_splits_and_true_rates_how_much_there_is(source, left, right):
    found = recommended(EXACT, fan_out(**source))
    assert (found["left"], found["right"]) == (left, right)


def test_a_source_without_a_true_rate_keeps_its_parallelism_and_passes_its_load_on():
    observation = job(
        "source>map",
        source={"parallelism": 3, "arrival_rate": 1000},
        map=op(1, 200, 0, 1.0),
    )
    assert recommended(EXACT, observation) == {"source": 3, "map": 5}


@pytest.mark.parametrize(
    ("known", "instances"),
    [
        pytest.param({"lag_rate": 700.0}, 3, id="read and piled up: 500 + 700"),
        pytest.param({"lag_rate": -100.0}, None, id="read 500, 100 of them old ones: 400 need what there is"),
        pytest.param({}, None, id="nothing to go by"),
    ],
)
def test_without_an_arrival_rate(known, instances):
    decision, _ = EXACT.decide(job(source=op(1, 500, 500, 1.0) | known), EMPTY_MEMORY)
    assert decision.parallelism.get("source") == instances
    assert decision.is_hold == (instances is None)


@pytest.mark.parametrize(
    ("parallelism", "needed", "acts"), [(4, 4, False), (4, 5, True), (5, 4, False), (6, 4, True), (1, 1, False)]
)
def test_acts_only_on_growth_or_a_shrink_by_two(parallelism, needed, acts):
    busy = needed / parallelism if needed <= parallelism else 1.0
    served = 100.0 * parallelism * busy
    decision, _ = EXACT.decide(
        job(source=op(parallelism, served, served, busy, arrival_rate=100.0 * needed)), EMPTY_MEMORY
    )
    assert decision.parallelism == ({"source": needed} if acts else {})


def test_a_shrink_by_one_rides_along_with_another_change():
    observation = job(
        "source>map",
        source=op(2, 1000, 1000, 0.5, arrival_rate=1000),
        map=op(2, 1000, 0, 1.0, lag_rate=0.0),
    )
    grown = job("source>map", source=op(2, 1000, 1000, 0.5, arrival_rate=1000), map=op(2, 500, 0, 1.0, lag_rate=500.0))
    assert recommended(EXACT, observation) == {}
    assert recommended(EXACT, grown) == {"source": 1, "map": 4}


def test_a_least_drop_of_one_removes_a_single_instance():
    spare = job(source=op(2, 100.0, 100.0, 0.5, arrival_rate=100.0))
    assert recommended(EXACT, spare) == {}
    assert recommended(Ds2(over_provisioning=1.0, least_drop=1), spare) == {"source": 1}


def test_lag_is_ignored_by_default():
    lagging = job(source=op(2, 1000, 1000, 1.0, arrival_rate=1000, lag=60_000))
    assert recommended(EXACT, lagging) == {}
    # 1000 + 60000 / 60 = 2000 at 500 each
    assert recommended(Ds2(over_provisioning=1.0, catch_up_s=60), lagging) == {"source": 4}


def test_a_realistic_maximum_busy_share_lowers_what_an_instance_can_do():
    # 500 each at full use, 400 at 80 %: 1000 / 400 = 2.5 -> 3
    observation = job(source=op(2, 800, 800, 0.8, arrival_rate=1000))
    assert recommended(EXACT, observation) == {}
    assert recommended(Ds2(over_provisioning=1.0, max_busy=0.8), observation) == {"source": 3}


def test_warm_up_ignores_the_first_windows_and_those_after_a_rescale():
    wanting = chain()
    rescaled = chain(parallelism=3)
    made = decisions(Ds2(over_provisioning=1.0, warm_up=2), [wanting, wanting, wanting, rescaled, rescaled, rescaled])
    assert [decision.is_hold for decision in made] == [True, True, False, True, True, False]
    assert "window 2 of 2" in made[1].reason


def test_activation_waits_for_several_windows_in_a_row_and_takes_the_largest():
    calm = chain(arrival_rate=500.0)
    made = decisions(
        Ds2(over_provisioning=1.0, activation=3),
        [chain(), chain(), calm, chain(), chain(arrival_rate=2000.0), chain()],
    )
    assert [decision.is_hold for decision in made] == [True, True, True, True, True, False]
    assert made[-1].parallelism == {"source": 2, "map": 8, "sink": 3}


def test_the_reason_has_the_numbers_that_drove_it():
    decision, _ = Ds2().decide(chain(), EMPTY_MEMORY)
    assert "map 2 -> 5 for 1,000 rec/s at 250 each, times 1.2" in decision.reason


@pytest.mark.parametrize(
    ("settings", "quoted"),
    [
        ({"over_provisioning": 0.0}, "got 0.0"),
        ({"warm_up": -1}, "got -1"),
        ({"activation": -2}, "and -2"),
        ({"catch_up_s": -1.0}, "got -1.0"),
        ({"max_busy": 1.5}, "got 1.5"),
        ({"least_drop": 0}, "got 0"),
    ],
)
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Ds2(**settings)
