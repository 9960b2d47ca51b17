"""The command line as its users meet it: contracts of the output, and one clear line for everything wrong."""

import json

import pytest

from sluice.cli import main
from sluice.journal.file import read_journal

SUMMARY = [
    "avg_slots",
    "max_slots",
    "avg_latency_s",
    "p50_latency_s",
    "p95_latency_s",
    "max_latency_s",
    "rescales",
    "throughput_ratio",
    "slo_violation_ratio",
    "slot_seconds",
    "downtime_s",
    "lost_records",
    "duplicated_records",
    "placement_followed",
    "price",
]

OBSERVATION = {
    "time_s": 15,
    "interval_s": 15,
    "operators": {
        "source": {"parallelism": 1, "input_rate": 100, "output_rate": 100, "busy": 0.5, "arrival_rate": 400},
        "sink": {"parallelism": 1, "input_rate": 100, "output_rate": 100, "busy": 0.25},
    },
    "edges": [["source", "sink"]],
}


@pytest.fixture
def sluice(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return call


@pytest.fixture
def observation_file(tmp_path):
    path = tmp_path / "observation.json"
    path.write_text(json.dumps(OBSERVATION))
    return path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("policies", {"static", "ds2"}),
        ("pipelines", {"q1", "q2", "q3", "q5", "q8", "q11", "wordcount", "yahoo", "inference"}),
        (
            "workloads",
            {"cosine", "random", "increasing", "decreasing", "convergence", "square", "permutation", "spikes"},
        ),
    ],
)
def test_listings_name_everything_with_parameters_and_defaults(sluice, command, expected):
    code, out, _ = sluice(command, "--json")
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert code == 0
    assert expected <= entries.keys()
    assert all(entry["summary"] for entry in entries.values())
    assert all({"default", "doc"} == found.keys() for e in entries.values() for found in e["parameters"].values())
    assert sluice(command)[0] == 0


def test_decide_prints_every_operator_and_a_reason(sluice, observation_file):
    code, out, _ = sluice("decide", "--policy", "ds2", "--set", "over_provisioning=1.0", observation_file)
    answer = json.loads(out)
    assert code == 0
    # 400 arrive, one instance could do 200 and 400
    assert answer["parallelism"] == {"source": 2, "sink": 1}
    assert answer["reason"]


def test_decide_takes_a_list_and_answers_in_order(sluice, tmp_path):
    path = tmp_path / "several.json"
    path.write_text(json.dumps([OBSERVATION, OBSERVATION]))
    code, out, _ = sluice("decide", "--policy", "static", path)
    assert code == 0
    assert [answer["parallelism"] for answer in json.loads(out)] == [{"source": 1, "sink": 1}] * 2


def test_decide_warns_of_metrics_nobody_knows(sluice, tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({**OBSERVATION, "operators": {"a": {"parallelism": 1, "bussy": 1}}, "edges": []}))
    code, _, err = sluice("decide", "--policy", "static", path)
    assert code == 0
    assert "ignoring unknown metrics: bussy" in err


def test_the_schema_can_be_asked_for(sluice):
    code, out, _ = sluice("decide", "--schema")
    assert code == 0
    assert "OperatorMetrics" in json.loads(out)["$defs"]


def test_a_run_keeps_the_summary_contract_and_leaves_a_picture(sluice, tmp_path):
    arguments = ["run", "q1", "--policy", "ds2", "--workload", "cosine", "--duration", 1200, "--seed", 1]
    code, out, err = sluice(*arguments, "--out", tmp_path, "--json")
    summary = json.loads(out)
    assert (code, err) == (0, "")
    assert list(summary) == SUMMARY
    assert summary["lost_records"] == summary["duplicated_records"] == 0
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    records = list(read_journal(tmp_path / "journal.jsonl"))
    assert [record.kind for record in records if record.kind != "outcome"] == ["run", *["cycle"] * 80, "end"]
    acted = [record.cycle for record in records if record.kind == "cycle" and record.action == "apply"]
    assert [record.cycle for record in records if record.kind == "outcome"] == acted
    picture = (tmp_path / "report.html").read_text()
    assert all(word in picture for word in ("arriving", "read", "slots", "latency"))


def test_the_same_run_again_is_the_same(sluice, tmp_path):
    for name in ("one", "two"):
        sluice("run", "q11", "--duration", 600, "--seed", 7, "--json", "--out", tmp_path / name)
    assert (tmp_path / "one" / "journal.jsonl").read_bytes() == (tmp_path / "two" / "journal.jsonl").read_bytes()


def test_a_run_without_a_folder_prints_a_table(sluice):
    code, out, _ = sluice("run", "wordcount", "--policy", "static", "--duration", 60)
    assert code == 0
    assert "avg_slots" in out


def test_dry_run_changes_nothing(sluice):
    _, out, _ = sluice("run", "q1", "--duration", 1200, "--dry-run", "--json")
    assert json.loads(out)["rescales"] == 0


def test_shadows_are_recorded_and_summed_up(sluice, tmp_path):
    run = ["run", "q1", "--policy", "ds2", "--duration", "120", "--out", tmp_path / "run", "--json"]
    code, _, _ = sluice(*map(str, run), "--shadow", "static", "--shadow", "sluice")
    assert code == 0
    code, out, _ = sluice("explain", str(tmp_path / "run"))
    assert "shadow static: agreed with the target in" in out
    assert "shadow sluice: " in out


def test_what_was_learned_is_kept_where_asked(sluice, tmp_path):
    memory = tmp_path / "memory.json"
    code, _, _ = sluice("run", "q1", "--set", "late_price=4", "--duration", 300, "--memory", memory, "--json")
    assert code == 0
    assert json.loads(memory.read_text())["policy"] == "sluice"
    code, _, err = sluice("run", "q1", "--policy", "static", "--duration", 300, "--memory", memory, "--json")
    assert code == 2
    assert "belongs to policy 'sluice', not 'static'" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "q1", "--policy", "nope"], "unknown policy 'nope'; known: "),
        (["run", "nope"], "unknown pipeline 'nope'; known: "),
        (["run", "q1", "--workload", "nope"], "unknown workload 'nope'; known: "),
        (["run", "q1", "--engine", "nope"], "unknown engine 'nope'; known: "),
        (["run", "q1", "--set", "nope=1"], "policy 'sluice' has no parameter 'nope'; it has: "),
        (
            ["run", "q1", "--policy", "ds2", "--set", "over_provisioning=much"],
            "over_provisioning: Input should be a valid number",
        ),
        (["run", "q1", "--set", "over_provisioning"], "--set takes key=value, got 'over_provisioning'"),
        (["run", "q1", "--shadow", "nope"], "unknown policy 'nope'; known: "),
        (["run", "q1", "--shadow", "ds2", "--shadow", "ds2"], "shadow 'ds2' is named twice"),
        (["replay", "MISSING", "--policy", "ds2"], "cannot read journal"),
        (["run", "q1", "--guard", "max_slots=0"], "max_slots must be at least 1, got 0"),
        (["run", "q1", "--sim-set", "nope=0"], "simulator has no parameter 'nope'; it has: "),
        (["run", "q1", "--duration", "0"], "duration_s must be above 0, got 0"),
        (["run", "q1", "--duration", "soon"], "'--duration': the value must be seconds or a time such as '30s'"),
        (["run", "q1", "--interval", "-5"], "interval_s must be above 0, got -5"),
        (["run", "q1", "--workload", "trace", "--workload-set", "path=HOLE"], "line 3: expected minute 1, got 2"),
        (["decide", "MISSING"], "cannot read observation"),
        (["decide", "NOT_JSON"], "is not JSON"),
        (["decide", "NAN"], "NaN is not a number JSON knows"),
        (["decide"], "decide needs a file"),
        (["nope"], "No such command 'nope'"),
        (["run", "q1", "--nope"], "No such option"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(sluice, tmp_path, arguments, said):
    files = {"HOLE": "minute,rate\n0,1\n2,1\n", "NOT_JSON": "{", "NAN": '{"time_s": NaN}'}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for word in ("HOLE", "MISSING", "NOT_JSON", "NAN"):
        arguments = [argument.replace(word, str(tmp_path / word)) for argument in arguments]
    code, out, err = sluice(*arguments)
    assert code == 2
    assert out == ""
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["run", "decide", "replay", "policies", "pipelines", "workloads"])
def test_every_command_teaches_with_help(sluice, command):
    code, out, _ = sluice(command, "--help")
    assert code == 0
    assert "Usage" in out
