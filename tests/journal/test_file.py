"""The journal loses at most its last line, the memory nothing."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.control.memory import MemoryStore
from sluice.errors import BadInputError
from sluice.journal.file import FileJournal, MemoryJournal, Rotation, read_journal, read_runs
from sluice.journal.records import Choice, Cycle, journal_schema
from tests.journal.records import cycle, end, header, outcome


def write(path, records):
    journal = FileJournal(path)
    for record in records:
        journal.append(record)
    journal.close()


RECORDS = [header(), cycle(0, action="apply"), outcome(0, 1, 2), cycle(1), end()]


def test_what_is_appended_is_read_back_in_order(tmp_path):
    path = tmp_path / "deep" / "journal.jsonl"
    write(path, RECORDS[:3])
    write(path, RECORDS[3:])
    assert list(read_journal(path)) == RECORDS


@given(cut=st.integers(0, 3000))
def test_a_crash_in_mid_write_loses_at_most_the_last_line(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    whole = b"".join(record.to_json().encode() + b"\n" for record in RECORDS)
    torn = whole[: max(0, len(whole) - cut)]
    path.write_bytes(torn)
    complete = torn.count(b"\n")
    assert list(read_journal(path)) == RECORDS[:complete]
    write(path, [header()])
    assert list(read_journal(path)) == [*RECORDS[:complete], header()]


def test_a_journal_that_grows_too_large_begins_anew_and_every_file_can_be_read_alone(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path, rotation=Rotation(at_bytes=3000, keep=2))
    journal.append(header())
    for number in range(30):
        journal.append(cycle(number, action="apply"))
        journal.append(outcome(number, 1, 2))
    journal.append(end())
    journal.close()
    files = ["journal.jsonl.2", "journal.jsonl.1", "journal.jsonl"]
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(files)
    runs = [read_runs(tmp_path / name) for name in files]
    assert [[run.header for run in found] for found in runs] == [[header()]] * 3
    reports = [report for (run,) in runs for report in run.reports]
    kept = [report.cycle.cycle for report in reports]
    assert kept == list(range(kept[0], 30))
    # a cycle and what came of it are never in different files
    assert all(report.result.kind == "scaled" for report in reports)
    assert runs[-1][0].end == end()
    assert all((tmp_path / name).stat().st_size < 5000 for name in files)


def test_a_journal_that_was_large_when_it_was_opened_is_rotated_as_well(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, [header(seed=1), *(cycle(number) for number in range(20))])
    journal = FileJournal(path, rotation=Rotation(at_bytes=100))
    journal.append(header(seed=2))
    journal.append(cycle(0))
    journal.close()
    assert [run.header.seed for run in read_runs(tmp_path / "journal.jsonl.1")] == [1, 2]
    assert [run.header.seed for run in read_runs(path)] == [2]


def test_files_that_cannot_be_renamed_do_not_end_a_journal(tmp_path, monkeypatch):
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path, rotation=Rotation(at_bytes=1))

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    for record in RECORDS:
        journal.append(record)
    journal.close()
    assert list(read_journal(path)) == RECORDS


def test_a_torn_tail_longer_than_a_block_is_cut_off_too(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(header().to_json().encode() + b"\n" + b"y" * 10_000)
    write(path, [cycle(0)])
    assert list(read_journal(path)) == [header(), cycle(0)]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"nonsense", "line 2: "),
        (b'{"kind":"cycle","cycle":-1}', "line 2: cycle"),
        (b'{"kind":"picture"}', "line 2: .*picture"),
        (b"[1]", "line 2: "),
    ],
)
def test_a_broken_line_in_the_middle_is_named(tmp_path, broken, message):
    path = tmp_path / "journal.jsonl"
    lines = [header().to_json().encode(), broken, end().to_json().encode()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(BadInputError, match=message):
        list(read_journal(path))


def test_a_format_from_the_future_is_refused_by_number(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({**header().to_data(), "format": 3}) + "\n")
    with pytest.raises(BadInputError, match="format 3; this version reads formats 1 to 2"):
        list(read_journal(path))


def test_a_missing_journal_is_one_clear_error(tmp_path):
    with pytest.raises(BadInputError, match="cannot read journal"):
        list(read_journal(tmp_path / "none.jsonl"))


def test_a_journal_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot write journal"):
        FileJournal(tmp_path / "file" / "journal.jsonl")


def test_every_line_follows_the_published_schema(tmp_path):
    path = tmp_path / "journal.jsonl"
    write(path, RECORDS)
    validator = jsonschema.Draft202012Validator(journal_schema())
    for line in path.read_text().splitlines():
        validator.validate(json.loads(line))


def test_a_journal_in_memory_keeps_the_header_and_the_newest_records():
    journal = MemoryJournal(limit=2)
    for record in [header(), *(cycle(number) for number in range(9))]:
        journal.append(record)
    assert journal.records == [header(), cycle(7), cycle(8)]


def old_cycle(number, *, applied=None, cooling=False, dry_run=False, planned=2):
    seen = {"source": {"parallelism": 2, "input_rate": 5.0, "arrival_rate": 5.0}}
    return {
        "kind": "cycle",
        "cycle": number,
        "time_s": 15.0 * (number + 1),
        "observation": {"time_s": 15.0 * (number + 1), "interval_s": 15.0, "operators": seen, "edges": []},
        "decision": {"parallelism": {"source": planned}, "reason": "2", "sizes": {}, "measures": {}},
        "problem": None,
        "plan": {"parallelism": {"source": planned}, "sizes": {}, "placement": None, "notes": ["noted"]},
        "cooling": cooling,
        "dry_run": dry_run,
        "applied": applied,
    }


def test_a_journal_of_the_first_format_is_read(tmp_path):
    path = tmp_path / "journal.jsonl"
    changed = {"changed": {"source": [2, 4]}, "downtime_s": 1.5, "detail": None, "error": None}
    failed = {"changed": {}, "downtime_s": 0.0, "detail": None, "error": "no slots"}
    counted = {"arrived": 9, "processed": 8, "waiting": 1, "lost": 0, "duplicated": 0, "downtime_s": 1.5}
    entries = [
        {
            "kind": "run",
            "version": "0.1.0",
            "engine": "sim",
            "pipeline": {"name": "q1", "settings": {}},
            "policy": {"name": "ds2", "set": {"warm_up": 2}},
            "guards": {"max_slots": 80},
            "graph": {"operators": [{"name": "source"}], "edges": []},
            "duration_s": 75.0,
            "interval_s": 15.0,
            "speedup": 1.0,
            "seed": 3,
            "slo_s": 30.0,
        },
        old_cycle(0, applied=changed, planned=4),
        old_cycle(1, applied=failed, planned=4),
        old_cycle(2, cooling=True, planned=4),
        old_cycle(3, dry_run=True, planned=4),
        old_cycle(4),
        {"kind": "end", "time_s": 75.0, "records": counted},
    ]
    path.write_text("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries))
    (run,) = read_runs(tmp_path)
    assert run.header.policy == Choice(name="ds2", settings={"warm_up": 2})
    kinds = [report.result.kind for report in run.reports]
    assert kinds == ["scaled", "failed", "cooldown", "would_scale", "held"]
    assert run.reports[0].result.changed == {"source": (2, 4)}
    assert run.reports[1].result.error == "source: no slots"
    assert run.end.records.waiting == 1
    # what is appended to an old journal today is read as today's
    write(path, RECORDS)
    runs = read_runs(path)
    assert len(runs) == 2
    assert isinstance(runs[1].reports[0].cycle, Cycle)


def test_memory_comes_back_and_is_replaced_whole(tmp_path):
    store = MemoryStore(tmp_path / "memory.json", "learner")
    assert store.load() == {}
    store.save({"samples": [[1, 2.5]]})
    store.save({"samples": [[1, 2.5], [2, 4.5]]})
    assert MemoryStore(tmp_path / "memory.json", "learner").load() == {"samples": [[1, 2.5], [2, 4.5]]}
    assert [path.name for path in tmp_path.iterdir()] == ["memory.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "does not hold a policy's memory"),
        ('{"version": 1, "policy": "learner", "memory": {"mean": NaN}}', "is not JSON: NaN is no number"),
        ('{"version": 1, "policy": "learner", "time_s": "9", "memory": {}}', "does not hold a policy's memory"),
        (json.dumps({"version": 9, "policy": "learner", "memory": {}}), "has version 9; this program reads 1"),
        (json.dumps({"version": 1, "policy": "other", "memory": {}}), "belongs to policy 'other', not 'learner'"),
    ],
)
def test_a_memory_that_is_not_ours_is_refused(tmp_path, content, message):
    path = tmp_path / "memory.json"
    path.write_text(content)
    with pytest.raises(BadInputError, match=message):
        MemoryStore(path, "learner").load()
