"""The results document: everything in it comes from outputs."""

import json
import re

import pytest

from sluice.cli import main
from sluice.errors import BadInputError
from sluice.lab.report.results import write_results

pytest.importorskip("matplotlib")

KANIS = {
    "paper": "kanis",
    "tables": [
        {
            "name": "7.3",
            "title": "DS2",
            "rows": [
                {"what": "slots", "paper": 9.4, "ours": 8.7, "unit": "slots", "verdict": "matches"},
                {"what": "p95", "paper": 110.5, "ours": 166.0, "unit": "s", "verdict": "not comparable"},
            ],
        }
    ],
}


def test_the_page_is_short_and_the_tables_beside_it_have_every_row(bench_folder, tmp_path):
    reproduced, findings = tmp_path / "kanis.json", tmp_path / "findings.md"
    reproduced.write_text(json.dumps(KANIS))
    findings.write_text("What we found.")
    document, *beside = write_results(tmp_path / "docs", [bench_folder], [reproduced], findings)
    text = document.read_text()
    assert text.startswith("# Results\n\nWhat we found.")
    assert "Policies compared on the simulator" in text
    assert "| [kanis](results/kanis.md), held out | 1 | 0 | 0 | 0 | 1 |" in text
    assert "8.7 slots" not in text
    paper = (tmp_path / "docs" / "results" / "kanis.md").read_text()
    assert "| slots | 9.4 slots | 8.7 slots | matches |" in paper
    assert "| p95 | 110.5 s | 166 s | not comparable |" in paper
    linked = {document.parent / link for link in re.findall(r"\]\((results/[^)]+)\)", text)}
    assert linked <= set(beside)
    assert all(path.exists() for path in beside)
    bench = tmp_path / "docs" / "results" / "bench-sim.md"
    assert {bench.parent / link for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", bench.read_text())} <= set(beside)
    assert str(tmp_path) not in text


def test_a_bench_that_is_not_given_keeps_its_page(tmp_path):
    (tmp_path / "results").mkdir()
    page = "# Policies compared on Spark\n\nOf an earlier day.\n\n![all](pareto.png)\n\n## q1\n\nLong.\n"
    (tmp_path / "results" / "bench-spark.md").write_text(page)
    reproduced = tmp_path / "kanis.json"
    reproduced.write_text(json.dumps(KANIS))
    text = write_results(tmp_path, [], [reproduced])[0].read_text()
    assert "## Policies compared on Spark\n\nOf an earlier day.\n\n![all](results/pareto.png)" in text
    assert "Long." not in text


def written(tmp_path, findings):
    reproduced, path = tmp_path / "kanis.json", tmp_path / "findings.md"
    reproduced.write_text(json.dumps(KANIS))
    path.write_text(findings)
    return write_results(tmp_path, [], [reproduced], path)[0].read_text()


def test_findings_take_their_figures_from_the_tables(tmp_path):
    text = written(
        tmp_path, "DS2 took {{kanis | 7.3 | slots | ours}} where the thesis has {{ kanis|7.3|slots|paper }}."
    )
    assert "DS2 took 8.7 slots where the thesis has 9.4 slots." in text


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("{{conttune | 4a | DS2 | ours}}", "unknown page of results in the findings' .* 'conttune'; known: kanis"),
        ("{{kanis | 7.3 | cores | ours}}", "unknown row .* 'cores'; known: p95, slots"),
        ("{{kanis | 7.3 | slots}}", "page . section . row . column"),
    ],
)
def test_a_finding_about_what_no_table_shows_is_refused(tmp_path, place, words):
    with pytest.raises(BadInputError, match=words):
        written(tmp_path, place)


def test_the_additions_to_conttune_are_drawn(tmp_path):
    rows = [
        {"what": f"{curve}: {method}, reconfigurations per tuning time", "paper": None, "ours": ours}
        | {"verdict": "not comparable"}
        for curve in ("first curve, Q1", "second curve, Q2")
        for method, ours in (("DS2", "2.19 ± 0.1"), ("ours, alpha 3", "1.54"))
    ]
    path = tmp_path / "conttune.json"
    path.write_text(json.dumps({"paper": "conttune", "tables": [{"name": "added", "title": "t", "rows": rows}]}))
    document, *beside = write_results(tmp_path, [], [path])
    assert tmp_path / "results" / "conttune-added.png" in beside
    assert "(results/conttune-added.png)" in document.read_text()


def test_two_benches_of_one_engine_would_share_their_pictures_and_are_refused(bench_folder, tmp_path):
    with pytest.raises(BadInputError, match="one bench per engine"):
        write_results(tmp_path, [bench_folder, bench_folder], [])


def test_nothing_to_write_about_is_said(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["results", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert "nothing to write about" in capsys.readouterr().err


def test_a_file_that_is_no_reproduction_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(BadInputError, match="sluice reproduce"):
        write_results(tmp_path, [], [tmp_path / "x.json"])


def test_a_paper_that_is_not_given_keeps_its_page_and_its_counts(tmp_path):
    reproduced = tmp_path / "kanis.json"
    reproduced.write_text(json.dumps(KANIS))
    first = write_results(tmp_path, [], [reproduced])[0].read_text()
    again = write_results(tmp_path, [], [], learned=learned_file(tmp_path))[0].read_text()
    counts = "| [kanis](results/kanis.md), held out | 1 | 0 | 0 | 0 | 1 |"
    assert counts in first
    assert counts in again
    assert "(results/verdicts.png)" in again


def spark_row(policy, seed, workload, slots):
    return {
        "engine": "spark",
        "pipeline": "q1",
        "workload": workload,
        "policy": policy,
        "seed": seed,
        "avg_slots": slots,
        "avg_latency_s": 2.0,
        "slo_violation_ratio": 0.0,
        "side_by_side": 6,
        "machine_busy": 0.7,
    }


def test_rows_that_a_benchmark_keeps_are_a_bench(tmp_path):
    rows = {
        f"{policy}-{workload}-{seed}": spark_row(policy, seed, workload, slots + seed)
        for policy, slots in (("ds2", 8.0), ("sluice", 6.0))
        for workload in ("cosine", "square")
        for seed in range(2)
    }
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    text = write_results(tmp_path, [path], [])[0].read_text()
    assert (
        "1 pipeline x 2 workloads x 2 policies x 2 seeds, 6 runs at a time, the machine 70% to 70% busy; 8 runs" in text
    )
    assert "| sluice | 6.5 ± 6 | 2 ± 0 | 0 ± 0 |" in text
    assert (tmp_path / "results" / "pareto-spark-q1.png").exists()


@pytest.mark.parametrize(
    ("content", "said"), [("{}", "no finished run"), ("[]", "runs by name"), ('{"a": 1}', "runs by")]
)
def test_a_file_without_rows_is_refused(tmp_path, content, said):
    (tmp_path / "rows.json").write_text(content)
    with pytest.raises(BadInputError, match=said):
        write_results(tmp_path, [tmp_path / "rows.json"], [])


def learned_file(tmp_path):
    def level(ended, again, actions):
        counts = dict(zip(("source", "counter"), ended, strict=True))
        found = {"load": 0.5, "again": again, "optimum": {"source": 1, "counter": 4}, "ended": counts}
        return found | {"carries": ended[1] >= 4, "actions": actions, "settled_s": 10.0 * actions}

    def row(seed, *levels):
        common = {
            "policy": "conttune",
            "seed": seed,
            "duration_s": 300.0,
            "slo_violation_ratio": 0.0,
            "side_by_side": 5,
        }
        machine = {"date": "2026-11-19", "processor": "a processor", "cores": 2, "sluice": "0.1.0"}
        return common | {"levels": levels, "environment": machine}

    path = tmp_path / "learned.json"
    runs = {"one": row(0, level((1, 5), False, 3), level((1, 4), True, 1))}
    runs["two"] = row(1, level((1, 3), False, 2), level((1, 4), True, 0))
    path.write_text(json.dumps(runs))
    return path


def test_what_learning_policies_ended_with_stands_beside_the_optimum(tmp_path):
    findings = tmp_path / "findings.md"
    findings.write_text("Again, ContTune found {{learning-on-spark | First and again | conttune, again | optimum}}.")
    text = write_results(tmp_path, [], [], findings, learned_file(tmp_path))[0].read_text()
    assert "Again, ContTune found 1 ± 0." in text
    assert "2 runs of 300 s on 2026-11-19, a processor, 2 cores, sluice 0.1.0, 5 at a time." in text
    # half the levels at the optimum, all within one, three of four carried; 6 + 5 and 4 + 5 slots over 10
    assert "| conttune | 2 | 0.5 ± 0 | 1 ± 0 | 0.75 ± 3 | 1 ± 1 | 1.5 ± 6 | 15 ± 64 | 0 ± 0 |" in text
    page = (tmp_path / "results" / "learning-on-spark.md").read_text()
    assert "| conttune, first | 0 ± 0 |" in page
    assert "| conttune, seed 0, level 1 | 0.5 | 1 + 4 | 1 + 5 | 3 | 30 |" in page


def test_runs_without_levels_are_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"one": {"policy": "ds2"}}')
    with pytest.raises(BadInputError, match=r"benchmarks\.learning_on_spark keeps"):
        write_results(tmp_path, [], [], None, tmp_path / "x.json")
