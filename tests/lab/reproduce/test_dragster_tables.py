import json

import numpy as np
import pytest

from sluice.cli import main
from sluice.journal.results import CycleReport
from sluice.lab.pipelines import pipelines
from sluice.lab.reproduce.dragster import DragsterTables, _speedup
from sluice.lab.reproduce.dragster_runs import (
    OneTaskAtATime,
    Phase,
    best_share,
    convergence_min,
    demand,
    growth_exponent,
    paper_job,
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
    definition = pipelines.create("wordcount")
    job = paper_job(definition)
    demands = demand(job, {"source": definition.peak_rate})
    assert demands["counter"] == pytest.approx(5 * definition.peak_rate)
    shares = [best_share(job, demands, budget) for budget in (3, 6, 9, 12, 20)]
    assert shares == sorted(shares)
    assert shares[-1] == best_share(job, demands, None) == 1.0


def test_a_method_that_did_not_converge_has_no_speed_up():
    def phase(time_min):
        return Phase(time_min=time_min, processed=1.0, offered=1.0, slot_seconds=1.0, before_rate=1.0)

    assert _speedup([phase(140.0)], [phase(70.0)]) == 2.0
    assert _speedup([phase(None)], [phase(70.0)]) is None
    assert _speedup([phase(140.0), phase(140.0)], [phase(70.0), phase(None)]) is None


def test_the_budget_experiment_keeps_the_budget_and_finds_the_best_under_it(capsys):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "dragster", "--table", "figure4", "--set", "seeds=1", "--json"])
    assert end.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    rows = {row["what"]: row for row in printed["tables"][0]["rows"]}
    assert rows["budget kept"]["verdict"] == "claim holds"
    assert rows["saddle point finds the optimum under the budget"]["verdict"] == "claim holds"
    assert printed["verdicts"]["held_out"]["claim holds"] >= 3


@pytest.mark.slow
def test_regret_by_the_true_curves_grows_more_slowly_than_time():
    table = DragsterTables(slots=400, seeds=1).run("regret", print)
    assert len(table.rows) == 4
    assert {str(row.verdict) for row in table.rows} == {"claim holds"}
