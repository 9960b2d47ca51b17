"""How steady, how soon, how near: small journals as stories."""

import numpy as np
import pytest

from sluice.journal.results import CycleReport
from sluice.lab.scores import score
from sluice.model import Observation, OperatorMetrics
from tests.journal.records import cycle, outcome

INTERVAL_S = 60.0


def journal(loads, slots):
    """One operator; the slots of a cycle are those its action leaves for the next."""
    reports = []
    before = slots[0]
    for number, (load, after) in enumerate(zip(loads, slots, strict=True)):
        time_s = (number + 1) * INTERVAL_S
        metrics = OperatorMetrics(parallelism=before, arrival_rate=load, input_rate=load, cpu=0.5)
        seen = Observation(time_s=time_s, interval_s=INTERVAL_S, operators={"source": metrics})
        acts = after != before
        found = cycle(number, action="apply" if acts else "none").model_copy(
            update={"time_s": time_s, "observation": seen}
        )
        reports.append(CycleReport(found, (outcome(number, before, after),) if acts else ()))
        before = after
    return reports


@pytest.mark.parametrize(
    ("loads", "slots", "oscillations"),
    [
        ([10, 10, 10, 10], [1, 2, 3, 4], 0),
        ([10, 10, 10, 10], [1, 2, 1, 2], 2),
        ([10, 20, 5, 30], [1, 2, 1, 2], 0),
        ([10, 20, 25, 30], [1, 2, 1, 1], 1),
    ],
    ids=["one way", "to and fro", "the load turns too", "down while the load goes up"],
)
def test_a_change_that_undoes_the_last_is_an_oscillation_unless_the_load_turned(loads, slots, oscillations):
    assert score(journal(loads, slots)).oscillations == oscillations


def test_settling_is_the_last_action_of_a_constant_load_that_is_left_alone_afterwards():
    # ten quiet minutes, thirty at 100 with actions in minutes 11 and 14, thirty at 50 with an action near the end
    loads = [0.0] * 10 + [100.0] * 30 + [50.0] * 30
    slots = [1] * 10 + [3] * 3 + [4] * 52 + [2] * 5
    first, second = score(journal(loads, slots)).stages
    assert (first.start_s, first.end_s, first.rate) == (600.0, 2400.0, 100.0)
    assert (first.converged_s, first.actions) == (240.0, 2)
    assert (second.converged_s, second.actions) == (None, 1)


def test_a_short_constant_load_is_nothing_to_settle_on():
    assert score(journal([10.0] * 15, [1] * 15)).stages == ()


def test_a_load_that_keeps_moving_has_no_stage():
    assert score(journal(list(np.linspace(1, 100, 100)), [1] * 100)).stages == ()


def test_cpu_is_the_mean_over_slots():
    assert score(journal([1.0] * 3, [1, 2, 3])).avg_cpu == pytest.approx(0.5)
