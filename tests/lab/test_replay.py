"""A past run asked again: what policies say to its windows, and how good the estimate of the run itself is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sluice.cli import main
from sluice.errors import BadInputError
from sluice.journal.file import FileJournal, MemoryJournal
from sluice.journal.records import Choice
from sluice.journal.results import RunLog, runs_of
from sluice.lab.bench.grid import Cell
from sluice.lab.replay import replay
from sluice.lab.run import run, simulated_engine
from sluice.protocol import policies
from tests.journal.records import cycle
from tests.journal.records import run as run_of


def past(policy: str, *, minutes: int = 60) -> RunLog:
    cell = Cell(
        pipeline=Choice(name="q1"),
        workload=Choice(name="cosine", settings={"minutes": minutes}),
        policy=Choice(name=policy),
        seed=1,
    )
    spec = cell.spec()
    journal = MemoryJournal()
    run(spec, *simulated_engine(spec), journal)
    return runs_of(journal.records)[0]


def test_the_run_itself_is_estimated_closely():
    found = replay(past("ds2"), {})
    assert found.estimate.slot_hours == pytest.approx(found.measured.slot_hours, rel=0.02)
    assert found.estimate.late == pytest.approx(found.measured.late, abs=0.1)
    assert found.estimate.actions == found.measured.actions


def test_other_policies_are_asked_and_estimated():
    run_log = past("ds2")
    found = replay(run_log, {name: policies.create(name) for name in ("ds2", "static", "sluice")})
    ds2, static, ours = found.replays
    assert static.estimate.actions == 0
    assert ours.estimate.late < 0.2 < found.measured.late
    asked = {one.time_s: one for one in ds2.advice}
    acted = [report.cycle for report in run_log.reports if report.result.is_action]
    assert all(asked[cycle.time_s].recommended == cycle.target.parallelism for cycle in acted)


def test_another_objective_can_be_asked_for():
    run_log = past("ds2", minutes=20)
    assert replay(run_log, {}, 1.0).measured.late >= replay(run_log, {}, 300.0).measured.late
    assert replay(run_log, {}, 1.0).objective_s == 1.0


def test_a_policy_that_fails_is_on_record():
    class Broken:
        def decide(self, observation, memory):
            raise ValueError("no idea")

    found = replay(past("static", minutes=5), {"broken": Broken()})
    assert "no idea" in found.replays[0].advice[0].problem
    json.dumps(found.to_data(), allow_nan=False)


def test_operators_that_share_their_instances_are_counted_once():
    """As the queries of an attachment do."""
    whole = past("static", minutes=5)
    attached = RunLog(whole.header.model_copy(update={"engine": "attach", "graph": None}), whole.reports, whole.end)
    found = replay(attached, {"ds2": policies.create("ds2")})
    assert found.measured.slot_hours < replay(whole, {}).measured.slot_hours
    assert len(set(found.replays[0].advice[-1].recommended.values())) == 1


def test_a_journal_that_shows_no_capacity_is_refused():
    with pytest.raises(BadInputError, match="no operator's capacity"):
        replay(run_of(cycle(0), cycle(1)), {})


def test_a_journal_that_shows_no_load_is_refused():
    """Without load nobody would be late."""
    whole = past("static", minutes=5)
    hidden = {"arrival_rate": None, "lag": None, "lag_rate": None}

    def without_load(report):
        seen = report.cycle.observation
        operators = {name: metrics.model_copy(update=hidden) for name, metrics in seen.operators.items()}
        observation = seen.model_copy(update={"operators": operators})
        return replace(report, cycle=report.cycle.model_copy(update={"observation": observation}))

    blind = RunLog(whole.header, tuple(without_load(report) for report in whole.reports), whole.end)
    with pytest.raises(BadInputError, match="no load of bids_source"):
        replay(blind, {})


def test_the_command_shows_estimates_as_such(tmp_path, capsys):
    path = tmp_path / "journal.jsonl"
    kept = FileJournal(path)
    whole = past("ds2", minutes=10)
    for record in (whole.header, *whole.cycles):
        kept.append(record)
    kept.close()

    def sluice(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["replay", str(path), *arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out + printed.err

    code, out = sluice("--policy", "ds2", "--policy", "databricks:patience=2")
    assert code == 0
    assert "the run: ds2 (measured)" in out
    assert "databricks:patience=2" in out
    assert "Estimates, from the capacities in the journal" in out
    _, far = sluice("--policy", "sluice", "--slo", "5m", "--json")
    _, near = sluice("--policy", "sluice", "--slo", "5", "--json")
    advice = [json.loads(each)[0]["replays"][0]["advice"] for each in (far, near)]
    assert advice[0] != advice[1], "it aims at the objective it is judged by"
    code, out = sluice("--policy", "sluice", "--slo", "0")
    assert (code, "the objective must be above 0 s, got 0" in out) == (2, True)
    code, out = sluice("--policy", "ds2", "--set", "warm_up=2", "--json")
    assert json.loads(out)[0]["replays"][0]["policy"] == "ds2:warm_up=2"
    assert sluice("--policy", "nope")[0] == 2
    code, out = sluice("--policy", "ds2", "--policy", "static", "--set", "warm_up=2")
    assert (code, "--set goes with one --policy" in out) == (2, True)
