"""Every verdict can fail: fed with the opposite of what a paper found, no row of any table agrees with it.

The runs are made up, from the printed figures turned round; the tables that judge them are the real ones.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from sluice.lab.reproduce import (
    Table,
    Verdict,
    capsys_profiles,
    capsys_search,
    capsys_study,
    conttune,
    dragster,
    kanis,
    qescalor,
)
from sluice.lab.reproduce import capsys as capsys_paper
from sluice.lab.reproduce.capsys_runs import Measured
from sluice.lab.reproduce.capsys_scaling import Step, Timeline
from sluice.lab.reproduce.conttune_runs import TUNING_TIMES, Tuned
from sluice.lab.reproduce.dragster_runs import Phase, Ran
from sluice.lab.sizing.samplers import Score

FAR = 5000.0
WORDS = ("matches", "order holds", "claim holds", "differs", "not comparable")


def quiet(_):
    """Progress that nobody reads."""


def all_differ(table: Table) -> None:
    for row in table.to_data()["rows"]:
        assert row["verdict"] in WORDS
        assert row["fitted"] in (True, False)
    judged = [row for row in table.rows if row.verdict is not Verdict.NOT_COMPARABLE]
    assert judged, table.name
    agreeing = [(row.what, row.paper, row.ours) for row in judged if row.verdict is not Verdict.DIFFERS]
    assert agreeing == [], table.name


# --- ContTune -----------------------------------------------------------------------------------------------------


def opposite_tuning(trial):
    """The better a method is in the paper, the worse here, and everything far from print."""
    rank = 1 + list(conttune.PAPERS_METHODS).index(trial.method) if trial.method in conttune.PAPERS_METHODS else 9
    rank = {"eq. 4": 5}.get(trial.method, rank)
    return Tuned(
        per_level=(50 * rank,) * TUNING_TIMES,
        growing=1000 * rank,
        shrinking=1000 * rank,
        largest_cores=1000 * rank,
        core_seconds=1e7 * rank * (1 + trial.seed / 100),
        backlog_share=2.0 * rank,
        catching_up_s=1e5 * rank,
        cores_at_ten=1000 * rank,
        latencies_at_ten_s=(100.0 * rank,),
        level_cores=(1000 * rank,) * TUNING_TIMES,
    )


@pytest.fixture
def tuned_worse(monkeypatch):
    conttune._shared_runs.cache_clear()
    monkeypatch.setattr(conttune, "in_parallel", lambda _, trials, __: [opposite_tuning(trial) for trial in trials])
    monkeypatch.setattr(conttune.ContTuneTables, "_random", lambda self, _: [0.01] * self.permutations)
    yield
    conttune._shared_runs.cache_clear()


@pytest.mark.parametrize(
    "table", [name for name in conttune.ContTuneTables().tables() if name not in ("added", "4b", "4f", "4e", "6")]
)
def test_conttune(tuned_worse, table, tmp_path):
    for job in ("video-streaming", "etl"):
        (tmp_path / f"{job}.csv").write_text("minute,rate\n0,100\n1,50\n2,80\n")
    found = conttune.ContTuneTables(permutations=2, traces=str(tmp_path)).run(table, quiet)
    all_differ(found)


@pytest.mark.parametrize("table", ["4b", "4e", "4f", "6"])
def test_conttunes_figures(tuned_worse, table):
    """The orders of these tables change from query to query: an opposite one for each is made below."""
    found = conttune.ContTuneTables(permutations=2).run(table, quiet)
    all_differ(found.model_copy(update={"rows": tuple(row for row in found.rows if not row.what.startswith("order"))}))


@pytest.mark.parametrize("printed", ["BACKLOG_PERCENT", "CORE_SECONDS", "CATCHING_UP_S", "RECONFIGURATIONS"])
def test_conttunes_orders(printed):
    paper = getattr(conttune.printed, printed)
    turned = {
        (method, name): [-paper[method][i], -paper[method][i]]
        for method in conttune.PAPERS_METHODS
        for i, name in enumerate(conttune.NAMES)
    }
    assert {row.verdict for row in conttune._orders(paper, turned)} == {Verdict.DIFFERS}


# --- Kanis --------------------------------------------------------------------------------------------------------


def opposite_runs(table, pipeline, labels, seeds):
    if table == "7.19":
        return {label: [opposite_settling(kanis.SETTLED[pipeline][label])] * seeds for label in labels}
    printed = kanis.QUERIES[pipeline] if table == "7.18" else kanis.TABLES[table].rows
    runs = {}
    for label in labels:
        figures = printed[label] or (0.0,) * len(kanis.COLUMNS)
        values = {name: FAR * 10 - figure for name, figure in zip(kanis.COLUMNS, figures, strict=True)}
        runs[label] = [SimpleNamespace(summary=SimpleNamespace(**values))] * seeds
    return runs


def opposite_settling(minutes):
    """Who settles in the thesis does not here, and the other way round."""
    settled = [None, None] if minutes is None else [0.0 if each is None else None for each in minutes]
    stages = [SimpleNamespace(converged_s=seconds, actions=FAR, end_slots=FAR, end_cpu=0.01) for seconds in settled]
    return SimpleNamespace(scores=SimpleNamespace(stages=stages))


@pytest.mark.parametrize("table", [name for name in kanis.Kanis().tables() if name != "7.17"])
def test_kanis(table, monkeypatch):
    def runs(self, name, pipeline, workload, labels, report, initial=None):
        return opposite_runs(name, pipeline, labels, self.seeds)

    monkeypatch.setattr(kanis.Kanis, "_results", runs)
    all_differ(kanis.Kanis(seeds=2).run(table, quiet))


def test_kanis_input_rates(monkeypatch):
    monkeypatch.setattr(kanis.pipelines, "create", lambda _: SimpleNamespace(peak_rate=1.0))
    all_differ(kanis.Kanis().run("7.17", quiet))


# --- Dragster -----------------------------------------------------------------------------------------------------


def opposite_phases(asked):
    """Times in the opposite order; Dhalion processes most, at the least cost."""
    best = asked.method == "Dhalion"
    times = [{"Dhalion": 21.0, "gradient": 500.0, "saddle point": 1000.0}[asked.method]] * 2
    if asked.workload == dragster.SQUARE:
        times = [FAR - 10 * printed for printed in dragster.TIMES_2[asked.method]]
    return Ran(
        phases=tuple(
            Phase(
                time_min=time_min,
                processed=10.0 if best else 1.0,
                offered=100.0,
                slot_seconds=1.0,
                before_rate=10.0 if best else 1.0,
                throughput=(1e9,) * 5 if best else (1.0,) * 5,
            )
            for time_min in times
        ),
        regret=tuple(np.arange(1.0, 400.0) ** 2),
        shortfall=tuple(np.arange(1.0, 400.0) ** 2),
        most_slots=1000,
    )


@pytest.mark.parametrize("table", dragster.DragsterTables().tables())
def test_dragster(table, monkeypatch):
    monkeypatch.setattr(dragster, "in_parallel", lambda _, asked, __: [opposite_phases(each) for each in asked])
    all_differ(dragster.DragsterTables(seeds=2).run(table, quiet))


# --- CAPSys -------------------------------------------------------------------------------------------------------


def carried(share: float) -> Measured:
    return Measured(throughput_share=share, backpressure=0.9 + 0.1 * (1 - share), latency_s=100.0 * (1 - share) + 1)


BAD, GOOD = carried(0.1), Measured(throughput_share=1.0, backpressure=0.01, latency_s=0.1)


def some_plans(arrays, limits, *, most, budget):
    plans, finished = REAL_LIST(arrays, limits, most=most, budget=budget)
    return plans[::-1][:-1], finished


REAL_LIST = capsys_study.list_plans


@pytest.mark.parametrize("table", ["figure2", "figure3a", "figure3b", "figure3c", "figure5"])
def test_capsys_plans(table, monkeypatch):
    """Crowded workers win: by tasks together (3a, 3b), by traffic (3c), and by having the least of it (2 and 5)."""
    crowding = {"figure3a": "inference", "figure3b": "join"}.get(table)

    def measured(self, plan, seed=0):
        if crowding:
            return carried(0.2 * self.together(crowding, plan))
        cpu, _, net = (float(cost) for cost in self.problem.costs(plan))
        if table == "figure3c":
            return carried(0.01 + 0.9 * net)
        least = min(float(self.problem.costs(other)[2]) for other in self.plans)
        return carried(1.0 if net < least + 0.01 else 0.5 - 0.5 * net + 0.1 * cpu)

    monkeypatch.setattr(capsys_study, "list_plans", some_plans)
    monkeypatch.setattr(capsys_study.PlanStudy, "measure", measured)
    monkeypatch.setattr(capsys_study, "measure", lambda *_: BAD)
    all_differ(capsys_paper.Capsys(runs=2).run(table, quiet))


def test_capsys_table_2(monkeypatch):
    monkeypatch.setattr(capsys_search, "build", lambda _, *, reordered: SimpleNamespace(arrays=reordered))
    monkeypatch.setattr(capsys_search, "count_within", lambda first, *_, **__: (5, 20 if first else 10, True))
    all_differ(capsys_paper.Capsys().run("table2", quiet))


def test_capsys_alone(monkeypatch):
    runs = {"caps": [BAD, BAD], "default": [GOOD, GOOD], "evenly": [GOOD, GOOD]}
    monkeypatch.setattr(capsys_paper.Capsys, "_runs", lambda *_: runs)
    all_differ(capsys_paper.Capsys(runs=2).run("figure7", quiet))


def test_capsys_together(monkeypatch):
    """caps misses every target; evenly misses just the one it meets in the paper."""

    def measured(self, placement, seed):
        others = placement is None
        return [GOOD if others and query.name != "Q2-join" else BAD for query in self.queries]

    monkeypatch.setattr(capsys_paper.Tenants, "placed_in_turn", lambda *_: None)
    monkeypatch.setattr(capsys_paper.Tenants, "measure", measured)
    all_differ(capsys_paper.Capsys(runs=2).run("figure8", quiet))


def test_capsys_against_odrp(monkeypatch):
    crowd = SimpleNamespace(parallelism={"a": 999})
    placed = SimpleNamespace(placement=crowd, reason="optimal", elapsed_s=1.0)
    monkeypatch.setattr(capsys_paper, "must_place", lambda *_: placed)
    monkeypatch.setattr(capsys_paper, "measure", lambda *_: Measured(0.3, 0.2, 1.0))
    all_differ(capsys_paper.Capsys(runs=2).run("table3", quiet))


def test_capsys_accuracy(monkeypatch):
    def turned(query, cluster, rates, strategy, seed):
        steps = []
        for printed in capsys_paper.PAPER_TABLE_4[strategy]:
            met, accurate = (word == "no" for word in printed.split())
            steps.append(Step(1.0 if met else 0.1, 10 if accurate else 99, 10))
        return steps

    monkeypatch.setattr(capsys_paper, "accuracy", turned)
    all_differ(capsys_paper.Capsys(runs=2).run("table4", quiet))


def test_capsys_convergence(monkeypatch):
    def turned(query, cluster, rates, strategy, seed):
        caps = strategy == "caps"
        return Timeline(50 + seed if caps else 1, [Step(0.1 if caps else 1.0, 60 if caps else 10, 10)], ())

    monkeypatch.setattr(capsys_paper, "convergence", turned)
    all_differ(capsys_paper.Capsys(runs=2).run("figure9", quiet))


def test_capsys_search_times(monkeypatch):
    times_s = iter(np.linspace(9.0, 1.0, 40))
    monkeypatch.setattr(capsys_search, "_cpu_seconds", lambda *_: (float(next(times_s)), False))
    all_differ(capsys_paper.Capsys().run("figure10", quiet))


def test_capsys_profiles(tmp_path, monkeypatch):
    def turned(strategy, runs, query, wanted):
        caps = strategy == "caps"
        return [0.9 if caps else 0.1] * runs, [BAD if caps else GOOD] * runs, "words"

    operators = [{"name": "a", "parallelism": 1, "cpu": 1, "net": 1}, {"name": "b", "parallelism": 2, "cpu": 3}]
    (tmp_path / "q.json").write_text(json.dumps({"operators": operators, "edges": [{"from": "a", "to": "b"}]}))
    monkeypatch.setattr(capsys_profiles, "_placed", turned)
    all_differ(capsys_paper.Capsys(runs=2, profiles=str(tmp_path)).run("profiles", quiet))


# --- QEScalor -----------------------------------------------------------------------------------------------------


def test_qescalor_samplers(monkeypatch):
    """Also where the paper's own table says the opposite of its text: CMO1 takes 15 samples, FSSA2 12."""

    def turned(operator, repeats, report):
        paper = qescalor.PAPER_SAMPLING[operator.name]
        best = min(rmse for name, (rmse, _) in paper.items() if name != "DSA")
        close, few = paper["DSA"][0] <= 1.2 * best, paper["DSA"][1] <= paper["FSSA2"][1]
        scores = {name: Score(1.0, 1.0, 10.0, (1.0,)) for name in paper}
        dsa = 9.0 if close else 0.1
        return scores | {"DSA": Score(dsa, dsa, 99.0 if few else 1.0, (dsa,))}

    monkeypatch.setattr(qescalor, "compare_samplers", turned)
    found = qescalor.QEScalorPaper().run("table2", quiet)
    all_differ(found)
    row = next(row for row in found.rows if row.what == "CMO1: DSA takes no more samples than FSSA2")
    assert (row.paper, row.ours) == ("15 and 12", "1.0 and 10.0")


def test_qescalor_models(monkeypatch):
    def turned(operator, kinds, repeats, report):
        paper = qescalor.PAPER_MODELS[operator.name]
        return {kind: Score(1 - paper[kind], 1.0, 1.0, (1 - paper[kind],) * 2) for kind in kinds}

    monkeypatch.setattr(qescalor, "compare_models", turned)
    all_differ(qescalor.QEScalorPaper().run("table3", quiet))


@pytest.mark.parametrize("table", ["figure2", "figure3"])
def test_qescalor_days(table, monkeypatch):
    """QCESA costs more, ever more so, and no planner keeps up."""

    def run(slope):
        times_s = [3600.0 * hour for hour in range(1, 25)]
        return SimpleNamespace(
            time_s=times_s,
            cost=[slope * time_s for time_s in times_s],
            load=[2.0] * 24,
            capacity=[1.0] * 24,
            summary=SimpleNamespace(max_latency_s=100.0, avg_latency_s=50.0),
            scalings=1,
            forecast_error=0.1,
        )

    day = {"QCESA": run(2.0), "CBA r1": run(1.0), "CBA r2": run(0.5)}
    monkeypatch.setattr(qescalor, "_day", lambda _: day)
    all_differ(qescalor.QEScalorPaper(days=2).run(table, quiet))


def test_qescalor_sampled_sizes(monkeypatch):
    monkeypatch.setattr(qescalor, "_steps", lambda _: (3.0, 1.0))
    all_differ(qescalor.QEScalorPaper().run("figure4", quiet))
