"""Journals that nobody of ours wrote: whatever their lines hold, the page answers, and answers with JSON."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.web.app import Page, PageSettings
from sluice.web.decisions import decision_detail
from sluice.web.library import Library
from sluice.web.metrics import exposition
from tests.journal.records import cycle, end, header, outcome
from tests.web.conftest import write

EVIL = "<img src=x onerror=alert(1)>\u202e\x00\x1b[31m\"'`${7*7}</script>"
GOOD = [
    json.loads(record.to_json())
    for record in (header(slo_s=30.0), cycle(0), cycle(1, action="apply", target=4), outcome(1, 2, 4), end())
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**30), 10**400, 0, -1, 1e308, -1e308, 5e-324, 2**53, 2**64]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([EVIL, "", "__proto__", "constructor", "\U0001f4a9", "a" * 10_000]),
    st.text(max_size=20),
    st.just([]),
    st.just({}),
    st.just([[["deep"]]]),
    st.just({EVIL: {EVIL: EVIL}}),
)
"""What stands where something else is expected."""
GARBAGE = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"",
            b"{",
            b"NaN",
            b'{"kind":NaN}',
            b'{"kind":"cycle"' + b',"a":1' * 3,
            b"\xff\xfe\x00",
            b'"\\ud800"',
            b"[" * 5_000,
            b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
            b"x" * 100_000,
            b'{"kind":"run","format":2}',
            b'{"kind":"run"}',
            b"9" * 5_000,
        ]
    ),
    st.text(max_size=100).map(lambda text: text.replace("\n", " ").encode()),
)


def places_of(data, path=()):
    """Every place in a record."""
    if path:
        yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places_of(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from places_of(value, (*path, number))


def changed(record, path, value):
    data = json.loads(json.dumps(record))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


@st.composite
def broken_records(draw):
    record = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in places_of(record) if place != ("kind",)]
        record = changed(record, draw(st.sampled_from(places)), draw(ODD))
    return json.dumps(record).encode()


LINES = st.lists(
    st.one_of(GARBAGE, broken_records(), st.sampled_from(GOOD).map(lambda one: json.dumps(one).encode())), max_size=12
)
THOROUGHLY = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def looked_at(place):
    """Everything that a page asks for, as the JSON it gets."""
    library = Library([place])
    (shelf,) = library.shelves()
    page = Page(library, PageSettings())
    data = json.loads(json.dumps(page.whole(shelf, 600, 0.0), allow_nan=False))
    with shelf.reading() as state:
        for decision in data["decisions"]:
            json.dumps(decision_detail(state, decision["id"]), allow_nan=False)
    json.dumps(shelf.to_data(), allow_nan=False)
    exposition(library)
    return data


@THOROUGHLY
@given(LINES)
def test_any_lines_are_shown_and_the_good_one_after_them_is_read(tmp_path, lines):
    path = tmp_path / "journal.jsonl"
    last = {**GOOD[1], "cycle": 7_777, "time_s": 1.0}
    lines = [*lines, *(json.dumps(record).encode() for record in (GOOD[0], last))]
    path.write_bytes(b"\n".join(line.replace(b"\n", b" ") for line in lines) + b"\n")
    data = looked_at(path)
    assert data["head"]["pipeline"] == "q1"
    assert data["cycles"] >= 1
    assert [one["name"] for one in data["operators"]] == ["source"]


@pytest.mark.parametrize("number", range(len(GOOD)), ids=[record["kind"] for record in GOOD])
@pytest.mark.parametrize(
    "value", [EVIL, 10**400, -1, None, {EVIL: [EVIL]}], ids=["html", "huge", "minus", "null", "dict"]
)
def test_no_field_of_any_record_breaks_the_page(tmp_path, number, value):
    journal = tmp_path / "journal.jsonl"
    for path in places_of(GOOD[number]):
        records = [*GOOD[:number], changed(GOOD[number], path, value), *GOOD[number + 1 :]]
        journal.write_text("".join(json.dumps(one) + "\n" for one in records))
        looked_at(journal)


def test_a_name_that_is_no_text_is_listed(tmp_path):
    folder = tmp_path / b"\xff\xfe<b>".decode("utf-8", "surrogateescape")
    write(folder / "journal.jsonl", header(), cycle(0))
    assert "<b>" in looked_at(tmp_path)["title"]


def test_text_without_end_is_clipped(tmp_path):
    long = "x" * 200_000
    one = cycle(0, names=(long,), action="apply", notes=(long,) * 30, problem=long)
    one = one.model_copy(update={"recommendation": one.recommendation.model_copy(update={"reason": long})})
    data = looked_at(write(tmp_path / "journal.jsonl", header(), one))
    assert len(json.dumps(data)) < 200_000
    assert data["last_decision"]["reason"].endswith("(200,000 characters)")


def test_a_pipe_in_the_folder_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    write(tmp_path / "one.jsonl", header(), cycle(0))
    assert looked_at(tmp_path)["cycles"] == 1
