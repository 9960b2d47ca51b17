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
