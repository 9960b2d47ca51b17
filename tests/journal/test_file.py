"""The journal loses at most its last line, the memory nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.control.memory import MemoryStore
from sluice.errors import BadInputError
from sluice.journal.file import FileJournal, encode, read_journal


def write(path, entries):
    journal = FileJournal(path)
    for entry in entries:
        journal.append(entry)
    journal.close()


def test_what_is_appended_is_read_back_in_order(tmp_path):
    path = tmp_path / "deep" / "journal.jsonl"
    write(path, [{"cycle": 0}, {"cycle": 1}])
    write(path, [{"cycle": 2}])
    assert [entry["cycle"] for entry in read_journal(path)] == [0, 1, 2]


@given(cut=st.integers(0, 200))
def test_a_crash_in_mid_write_loses_at_most_the_last_line(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    entries = [{"cycle": number, "text": "x" * number * 7} for number in range(5)]
    whole = b"".join(encode(entry) for entry in entries)
    torn = whole[: max(0, len(whole) - cut)]
    path.write_bytes(torn)
    complete = torn.count(b"\n")
    assert list(read_journal(path)) == entries[:complete]
    write(path, [{"after": True}])
    assert list(read_journal(path)) == [*entries[:complete], {"after": True}]


def test_a_torn_tail_longer_than_a_block_is_cut_off_too(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(encode({"cycle": 0}) + b"y" * 10_000)
    write(path, [{"cycle": 1}])
    assert [entry["cycle"] for entry in read_journal(path)] == [0, 1]


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"a":1}\nnonsense\n{"a":2}\n')
    with pytest.raises(BadInputError, match="line 2: not JSON"):
        list(read_journal(path))


def test_a_missing_journal_is_one_clear_error(tmp_path):
    with pytest.raises(BadInputError, match="cannot read journal"):
        list(read_journal(tmp_path / "none.jsonl"))


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
        (json.dumps({"version": 9, "policy": "learner", "memory": {}}), "has version 9; this program reads 1"),
        (json.dumps({"version": 1, "policy": "other", "memory": {}}), "belongs to policy 'other', not 'learner'"),
    ],
)
def test_a_memory_that_is_not_ours_is_refused(tmp_path, content, message):
    path = tmp_path / "memory.json"
    path.write_text(content)
    with pytest.raises(BadInputError, match=message):
        MemoryStore(path, "learner").load()
