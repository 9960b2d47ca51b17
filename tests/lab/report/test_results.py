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
