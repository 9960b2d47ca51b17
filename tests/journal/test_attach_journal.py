"""Reading the journal of an attachment, whose operators come and go."""

import json

import pytest

from sluice.cli import main
from sluice.journal.file import FileJournal
from sluice.journal.records import Choice
from tests.journal.records import cycle, end, header, outcome


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "attached.jsonl"
    head = header(engine="attach", pipeline=Choice(name="shop"), settings={"max_executors": 4})
    records = [
        head,
        cycle(0, names=("application",), parallelism=1),
        cycle(1, 40.0, names=("orders", "clicks"), parallelism=1, target=3, action="apply"),
        outcome(1, 1, 3, names=("orders", "clicks"), status="waiting", observed=1),
        outcome(1, 1, 3, names=("orders", "clicks"), detail="there after 9 s"),
        cycle(2, 5.0, names=("orders", "clicks"), parallelism=3),
        cycle(3, 4.0, names=("clicks",), parallelism=3),
        head,
        cycle(0, names=("clicks",), parallelism=3),
        end(),
    ]
    written = FileJournal(path)
    for record in records:
        written.append(record)
    written.close()
    return path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code, capsys.readouterr().out


def test_it_is_explained_as_one_change_of_executors(journal, capsys):
    code, out = run(capsys, "explain", journal, "--json")
    assert code == 0
    (action,) = json.loads(out)["actions"]
    assert action["change"] == "executors 1 -> 3 (there after 9 s)"
    assert action["outcome"].startswith("30 s later: latency 40.0s -> 4.0s")


def test_it_is_explained_run_by_run(journal, capsys):
    _, out = run(capsys, "explain", journal)
    assert out.splitlines()[0] == "started: ds2 on shop"
    assert "resumed: ds2 on shop" in out


def test_it_is_reported_with_executors_counted_once(journal, capsys):
    code, out = run(capsys, "report", journal, "--json")
    assert code == 0
    page = journal.parent / "report.html"
    assert json.loads(out)["page"] == str(page)
    text = page.read_text()
    assert '"slots":{"executors":[1,1,3,3,3]}' in text
    assert "executors 1 to 3" in text


def test_it_is_checked_and_counted(journal, capsys):
    code, out = run(capsys, "journal", "check", journal, "--json")
    assert code == 0
    assert json.loads(out)["runs"] == [
        {"engine": "attach", "policy": "ds2", "cycles": 4, "actions": 1, "ended": False},
        {"engine": "attach", "policy": "ds2", "cycles": 1, "actions": 0, "ended": True},
    ]


def test_the_schema_is_printed(capsys):
    code, out = run(capsys, "journal", "schema")
    assert code == 0
    assert {"RunHeader", "Cycle", "Outcome", "End"} <= json.loads(out)["$defs"].keys()
