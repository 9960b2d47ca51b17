"""What a report is made of, from one run, a bench, and several folders."""

import csv
import json
import re

import pytest

from sluice.cli import main
from sluice.errors import BadInputError
from sluice.lab.bench.statistics import METRICS
from sluice.lab.report.content import collect, overall, to_json
from sluice.lab.report.export import write_csv, write_pictures
from sluice.lab.report.page import page


def test_a_bench_is_told_whole(bench_folder):
    content = collect([bench_folder])
    assert content.notes == (
        "small: bench of 1 pipeline x 2 workloads x 3 policies x 2 seeds, 3000 s each; 12 of 12 runs finished",
    )
    assert len(content.rows) == 12
    assert len(content.groups) == 6
    assert [group.policy for group in content.overall] == ["ds2", "hpa-cpu", "clairvoyant"]
    assert content.baseline == "ds2"
    assert {run.seed for run in content.runs} == {0}
    assert "cores" in content.environment


def test_one_run_needs_no_bench(run_folder):
    content = collect([run_folder])
    (shown,) = content.runs
    assert (shown.pipeline, shown.workload, shown.policy, shown.seed) == ("q1", "cosine", "ds2", 1)
    assert shown.series.actions
    assert all(action.reason for action in shown.series.actions)
    assert content.comparisons == ()


def test_several_folders_are_compared_by_name(bench_folder, run_folder):
    content = collect([run_folder, bench_folder])
    assert "one: ds2" in {group.policy for group in content.groups}
    assert "small: ds2" in {group.policy for group in content.groups}
    assert content.baseline == "one: ds2"
    assert {found.policy for found in content.comparisons} == {"small: ds2", "small: hpa-cpu", "small: clairvoyant"}


def test_the_page_asks_nothing_of_the_network(bench_folder):
    text = page(collect([bench_folder]))
    head, _, rest = text.partition("<script>")
    own = head + rest.partition("</script>")[2]
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", own)


def test_no_text_can_break_out_of_the_page(bench_folder):
    content = collect([bench_folder]).model_copy(update={"title": "</script><b>"})
    assert "</script>" not in to_json(content)
    assert "<title>&lt;/script&gt;&lt;b&gt;" in page(content)


def test_every_control_is_one_the_keyboard_knows_and_every_plot_has_words(bench_folder):
    text = page(collect([bench_folder]))
    body = text[: text.index('<script type="application/json"')]
    assert "onclick" not in body[: body.index("<script>")]
    assert len(re.findall(r'role="img" aria-label="[^"]{20,}"', body)) == 2
    assert re.findall(r"<select id=\"(\w+)\"", body) == ["case", "latency", "run", "beside"]


def test_tables_are_written_as_csv(bench_folder, tmp_path):
    names = {path.name for path in write_csv(collect([bench_folder]), tmp_path)}
    assert names == {"runs.csv", "scores.csv", "comparisons.csv", "decisions.csv"}
    with open(tmp_path / "runs.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert float(rows[0]["avg_slots"]) > 0


def test_pictures_are_the_same_every_time(bench_folder, tmp_path):
    pytest.importorskip("matplotlib")
    content = collect([bench_folder])
    content = content.model_copy(update={"runs": content.runs[:1], "groups": content.groups[:3]})
    first = {path.name: path.read_bytes() for path in write_pictures(content, tmp_path / "one", "svg")}
    second = {path.name: path.read_bytes() for path in write_pictures(content, tmp_path / "two", "svg")}
    assert first == second
    assert set(first) == {"pareto-all-all-all.svg", "pareto-sim-q1-cosine.svg", "timeline-sim-q1-cosine-ds2-0.svg"}


def test_the_command_says_what_it_wrote(bench_folder, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(bench_folder), "--out", str(tmp_path / "page.html"), "--csv", str(tmp_path), "--json"])
    assert stopped.value.code == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 5


@pytest.mark.parametrize(
    ("folders", "baseline", "said"),
    [(["nowhere"], None, "neither a run"), ([], None, "at least one folder"), (["bench"], "x", "unknown baseline 'x'")],
)
def test_what_cannot_be_shown_is_said(bench_folder, tmp_path, folders, baseline, said):
    paths = [bench_folder if name == "bench" else tmp_path / name for name in folders]
    with pytest.raises(BadInputError, match=said):
        collect(paths, baseline)


def test_a_seed_of_which_a_run_is_missing_is_left_out_of_the_mean_over_cases():
    def row(policy, workload, seed, slots):
        case = {"engine": "sim", "pipeline": "q1", "workload": workload, "policy": policy, "seed": seed}
        return {**dict.fromkeys(METRICS), **case, "avg_slots": slots}

    rows = [row(p, w, seed, 10.0) for p in ("a", "b") for w in ("cosine", "random") for seed in (0, 1)]
    rows += [row("a", "cosine", 2, 90.0), row("b", "cosine", 2, 90.0)]
    assert [group.estimates["avg_slots"].mean for group in overall(rows)] == [10.0, 10.0]
    assert {group.estimates["avg_slots"].count for group in overall(rows)} == {2}
