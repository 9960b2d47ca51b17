import json

import numpy as np
import pytest

from sluice.cli import main
from sluice.journal.results import CycleReport
from sluice.lab.pipelines import pipelines
from sluice.lab.reproduce.dragster import (
    DragsterTables,
    OneTaskAtATime,
    best_share,
    convergence_min,
    growth_exponent,
)
from sluice.model import Observation, OperatorMetrics
from sluice.protocol import policies
from tests.journal import records
from tests.policies.jobs import job


def cycle(changed, arrival=100.0, read=100.0):
    operators = {
        "source": OperatorMetrics(parallelism=1, arrival_rate=arrival, input_rate=read),
        "map": OperatorMetrics(parallelism=1, input_rate=read),
    }
    seen = Observation(time_s=15, interval_s=15, operators=operators)
    made = records.cycle(0, action="apply" if changed else "none").model_copy(update={"observation": seen})
    return CycleReport(made, (records.outcome(0, 1, 2, names=("map",)),) if changed else ())


@pytest.mark.parametrize(
    ("cycles", "minutes"),
    [
        ([cycle(False)] * 5, 0.0),
        ([cycle(True, read=20.0), cycle(True, read=50.0), cycle(False), cycle(False)], 20.0),
        ([cycle(True), cycle(False, read=50.0), cycle(False, read=50.0)], None),
        ([cycle(False), cycle(False), cycle(True)], None),
    ],
)
def test_a_phase_has_converged_at_its_last_change_if_what_is_left_carries_the_load(cycles, minutes):
    assert convergence_min(cycles) == minutes


def test_the_exponent_of_a_power_is_that_power():
    slots = np.arange(1, 1001)
    assert growth_exponent(3.0 * slots**0.5) == pytest.approx(0.5)
    assert growth_exponent(np.zeros(1000)) == 0.0


def test_the_papers_dhalion_moves_one_task_and_stops_at_the_budget():
    seen = job(
        "source>map",
        source={"parallelism": 2, "input_rate": 10, "backpressure": 0.8, "busy": 0.2, "lag_rate": 5000, "lag": 1e6},
        map={"parallelism": 3, "input_rate": 10, "backpressure": 0.0, "busy": 1.0},
    )
    inner = policies.create("dhalion")
    assert inner.decide(seen, {})[0].parallelism["map"] > 4
    assert OneTaskAtATime(inner).decide(seen, {})[0].parallelism == {"source": 2, "map": 4}
    assert OneTaskAtATime(inner, slots=5).decide(seen, {})[0].parallelism == {"source": 2, "map": 3}


def test_the_best_share_grows_with_the_budget_to_the_whole_load():
    shares = [best_share(pipelines.create("wordcount"), budget) for budget in (3, 6, 9, 12, 20)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_budget_experiment_keeps_the_budget_and_finds_the_best_under_it(capsys):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "dragster", "--table", "4", "--json"])
    assert end.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    rows = {row["what"]: row for row in printed["tables"][0]["rows"]}
    assert rows["most slots ever used"]["ours"] <= 9
    assert rows["saddle point, of the best under the budget"]["ours"] > 0.9
    assert rows["gradient, of the best under the budget"]["ours"] > 0.9


@pytest.mark.slow
def test_regret_on_the_simulator_grows_more_slowly_than_time():
    table = DragsterTables(slots=400).run("regret", print)
    exponents = [row.ours for row in table.rows if "exponent" in row.what]
    assert len(exponents) == 4
    assert all(exponent < 0.9 for exponent in exponents)
