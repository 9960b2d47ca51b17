"""What a page says of a journal."""

import json
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sluice.journal.file import read_runs
from sluice.journal.records import Intervention
from sluice.model import Learned, LearnedCurve, LoadForecast, Placement, Recommendation, Target
from sluice.web.grafana import dashboard_json
from sluice.web.library import Library
from sluice.web.metrics import METRICS
from tests.journal.records import cycle, end, header
from tests.web.conftest import write


def only(client):
    (found,) = client.get("/api/journals").json()["journals"]
    return found["id"]


def shown(client):
    return client.get(f"/api/journals/{only(client)}").json()


def test_a_journal_is_told_whole(client_of, journal):
    data = shown(client_of(journal.parent))
    assert data["cycles"] == 3
    assert data["verdict"] == {
        "word": "was late",
        "good": False,
        "sentence": "Latency was above 30 s for 33% of the time. "
        "At the end: 100 records/s arrive, 100 are read, latency 1.0 s (objective 30 s).",
    }
    assert data["rows"]["slots"] == [2, 2, 4]
    assert data["rows"]["latency_s"] == [40.0, 1.0, 1.0]
    assert data["costs"]["late"] == 1
    (decision,) = data["decisions"]
    assert decision["change"] == "source 2 -> 4"
    assert decision["reason"] == "source 1 -> 2 for 150 rec/s at 100 each"
    assert data["last_decision"] == decision
    assert data["ended"]


@pytest.mark.parametrize(
    ("rates", "latency_s", "word"),
    [
        ((100.0, 100.0), 1.0, "keeps up"),
        ((100.0, 80.0), 1.0, "falls behind"),
        ((100.0, 130.0), 90.0, "catches up"),
        ((100.0, 100.0), 90.0, "late"),
        ((0.0, 0.0), None, "idle"),
    ],
)
def test_the_verdict_is_by_reads_and_by_the_objective(client_of, tmp_path, rates, latency_s, word):
    arriving, read = rates
    one = cycle(0, latency_s=latency_s)
    metrics = one.observation.operators["source"].model_copy(update={"arrival_rate": arriving, "input_rate": read})
    seen = one.observation.model_copy(update={"operators": {"source": metrics}})
    path = write(tmp_path / "journal.jsonl", header(slo_s=30.0), one.model_copy(update={"observation": seen}))
    assert shown(client_of(path))["verdict"]["word"] == word


@pytest.mark.parametrize(
    ("late", "read", "error", "word"),
    [
        (0, 100.0, None, "kept up"),
        (1, 100.0, None, "kept up"),
        (2, 100.0, None, "was late"),
        (0, 90.0, None, "fell behind"),
        (0, 100.0, "the broker was gone", "failed"),
    ],
)
def test_a_run_that_is_over_is_judged_by_all_of_it(client_of, tmp_path, late, read, error, word):
    cycles = []
    for number in range(30):
        one = cycle(number, latency_s=90.0 if number < late else 1.0)
        metrics = one.observation.operators["source"].model_copy(update={"arrival_rate": 100.0, "input_rate": read})
        seen = one.observation.model_copy(update={"operators": {"source": metrics}})
        cycles.append(one.model_copy(update={"observation": seen}))
    ended = end().model_copy(update={"error": error})
    path = write(tmp_path / "journal.jsonl", header(slo_s=30.0), *cycles, ended)
    said = shown(client_of(path))["verdict"]
    assert said["word"] == word
    assert said["good"] is (word == "kept up")
    assert error is None or error in said["sentence"]


def test_decisions_are_those_that_explain_tells(client_of, tmp_path):
    records = [header(dry_run=True)]
    for number, proposed in enumerate([4, 4, 5, None, 5]):
        records.append(cycle(number, action="dry_run" if proposed else "none", proposed=proposed))
    data = shown(client_of(write(tmp_path / "journal.jsonl", *records)))
    assert [one["cycle"] for one in data["decisions"]] == [4, 2, 0]
    assert {one["kind"] for one in data["decisions"]} == {"would_scale"}


def test_a_decision_opens_with_its_records_as_written(client_of, journal):
    client = client_of(journal)
    key = shown(client)["decisions"][0]["id"]
    data = client.get(f"/api/journals/{only(client)}/decisions/{key}").json()
    assert [json.loads(text)["kind"] for text in data["records"]] == ["cycle", "outcome"]
    assert client.get(f"/api/journals/{only(client)}/decisions/{key + 1}").status_code == 404


def test_what_was_learned_placed_and_foreseen_is_shown(client_of, tmp_path):
    learned = Learned(
        curves={"source": LearnedCurve(parallelism=(1, 2), mean=(10, 20), low=(8, 15), high=(12, 25))},
        forecast=LoadForecast(time_s=(30, 45), mean=(100, 110), low=(90, 95), high=(110, 130)),
    )
    one = cycle(0).model_copy(
        update={
            "recommendation": Recommendation(reason="as learned", learned=learned),
            "target": Target(parallelism={"source": 2}, placement=Placement(tasks={"w0": {"source": 2}})),
        }
    )
    data = shown(client_of(write(tmp_path / "journal.jsonl", header(), one)))
    assert data["curves"][0]["model"]["high"] == [12, 25]
    assert data["forecast"]["mean"] == [100, 110]
    (worker,) = data["placement"]["workers"]
    assert worker == {"name": "w0", "planned": [{"operator": "source", "tasks": 2}], "actual": []}


def test_fields_of_other_versions_are_taken_where_they_fit(client_of, tmp_path):
    data = json.loads(cycle(0).to_json())
    data["shadows"] = {"ds2": {"parallelism": {"source": 7}, "reason": "more"}, "odd": 3}
    data["observation"]["workers"] = {"w1": {"slots": 2, "source_tasks": {"source": 8}}, "odd": 3}
    path = write(tmp_path / "journal.jsonl", header())
    path.write_text(path.read_text() + json.dumps(data) + "\n")
    page = shown(client_of(path))
    assert page["shadow"] == [
        {"policy": "ds2", "changes": [{"operator": "source", "now": 2, "would": 7}], "reason": "more"}
    ]
    assert page["placement"]["workers"][0]["actual"] == [{"operator": "source", "tasks": 2}]


def test_a_journal_is_followed_as_it_grows_and_when_it_begins_anew(tmp_path):
    path = write(tmp_path / "journal.jsonl", header(), cycle(0))
    (shelf,) = Library([path]).shelves()
    assert len(shelf.refresh().columns) == 1
    with open(path, "ab") as file:
        whole = cycle(1).to_json().encode() + b"\n"
        file.write(whole[:40])
        file.flush()
        assert len(shelf.refresh().columns) == 1
        file.write(whole[40:])
    assert len(shelf.refresh().columns) == 2
    path.replace(tmp_path / "journal.jsonl.1")
    write(path, header(), cycle(7))
    assert len(shelf.refresh().columns) == 1
    assert shelf.state.last.cycle == 7


def test_decisions_and_uses_of_controls_of_a_resumed_run_are_at_their_time(client_of, tmp_path):
    pause = Intervention(cycle=1, time_s=20.0, control="pause")
    again = [cycle(0), cycle(1, action="apply", target=1), pause]
    data = shown(client_of(write(tmp_path / "journal.jsonl", header(), cycle(0), cycle(1), header(), *again)))
    assert [(one["at_s"], one["direction"]) for one in data["decisions"]] == [(60.0, "down")]
    assert [one["at_s"] for one in data["interventions"]] == [50.0]


def test_a_journal_without_its_header_is_listed_like_any_other(client_of, tmp_path):
    torn = write(tmp_path / "torn" / "journal.jsonl", cycle(0))
    torn.write_bytes(b"\x00\x00\n" + torn.read_bytes())
    write(tmp_path / "whole" / "journal.jsonl", header(), cycle(0))
    (tmp_path / "torn" / "other.jsonl").write_text("nothing of ours\n")
    titles = {one["title"] for one in client_of(tmp_path).get("/api/journals").json()["journals"]}
    assert titles == {"torn", "whole"}


def test_resumed_runs_follow_one_another_in_time(tmp_path):
    path = write(tmp_path / "journal.jsonl", header(), cycle(0), cycle(1), header(), cycle(0))
    (shelf,) = Library([path]).shelves()
    assert shelf.refresh().columns.picture(10)["time_s"] == [15, 30, 45]


def test_many_cycles_become_few_rows_that_keep_the_worst_latency(tmp_path):
    late = [cycle(number, latency_s=99.0 if number == 500 else 1.0) for number in range(1000)]
    (shelf,) = Library([write(tmp_path / "journal.jsonl", header(), *late)]).shelves()
    rows = shelf.refresh().columns.picture(100)
    assert len(rows["time_s"]) == 100
    assert max(rows["latency_s"]) == 99.0
    assert rows["time_s"][-1] == 15000.0


def test_a_journal_of_the_first_format_is_read(client_of, tmp_path):
    old = {"kind": "run", "version": "0.1.0", "engine": "sim", "pipeline": "q1", "policy": "ds2", "interval_s": 15}
    path = tmp_path / "old.jsonl"
    seen = cycle(0).observation.to_data()
    decision = {"parallelism": {"source": 4}, "reason": "more"}
    applied = {"status": "done"}
    one = {"kind": "cycle", "cycle": 0, "time_s": 15, "observation": seen, "decision": decision}
    one |= {"plan": {"parallelism": {"source": 4}}, "action": "rescale", "applied": applied}
    path.write_text(json.dumps(old) + "\n" + json.dumps(one) + "\n")
    data = shown(client_of(path))
    assert data["head"]["pipeline"] == "q1"
    assert data["cycles"] + data["bad_lines"]["count"] == 1


def test_metrics_of_live_journals_are_those_of_the_definition(client_of, tmp_path):
    client = client_of(write(tmp_path / "run" / "journal.jsonl", header(), cycle(0)))
    only(client)
    client.library.shelves()[0].refresh()
    text = client.get("/metrics").text
    assert 'sluice_executors{run="run"} 2.0' in text
    assert 'sluice_arrival_records_per_second{query="source",run="run"} 100.0' in text.replace(
        '{run="run",query="source"}', '{query="source",run="run"}'
    )
    assert all(f"# HELP {metric.name} " in text for metric in METRICS)


def test_every_metric_and_label_that_grafana_asks_for_is_exposed(client_of, tmp_path):
    one = cycle(0)
    everything = {metric.field: 0.5 for metric in METRICS if metric.field}
    metrics = one.observation.operators["source"].model_copy(update=everything)
    one = one.model_copy(update={"observation": one.observation.model_copy(update={"operators": {"source": metrics}})})
    text = client_of(write(tmp_path / "journal.jsonl", header(), one)).get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    panels = json.loads(dashboard_json())["panels"]
    assert len(panels) == len(METRICS)
    for panel in panels:
        (target,) = panel["targets"]
        name = re.search(r"sluice_\w+", target["expr"])[0]
        found = [sample for sample in samples if sample.name == name]
        assert found, name
        assert {*re.findall(r"{{(\w+)}}", target["legendFormat"]), "run"} == {*found[0].labels}


def test_the_example_for_grafana_is_made_of_the_same_definition():
    from pathlib import Path

    example = Path(__file__).parents[2] / "examples" / "grafana.json"
    assert example.read_text() == dashboard_json(), "write it anew: sluice dashboard --grafana > examples/grafana.json"
    expressions = [panel["targets"][0]["expr"] for panel in json.loads(example.read_text())["panels"]]
    assert all(metric.name in text for metric, text in zip(METRICS, expressions, strict=True))


def test_what_people_did_does_not_disturb_other_readers(live):
    live.run(2, lambda number: live.switches.ask("pause") if number == 0 else None)
    (run,) = read_runs(live.journal.path)
    assert len(run.reports) == 2
    assert run.end is not None
