"""A long journal: what is shown before all of it is read, and that all of it is what remains."""

from itertools import pairwise

import pytest

from sluice.web import glimpse as module
from sluice.web.glimpse import glimpse
from sluice.web.library import Library
from tests.journal.records import cycle, end, header, outcome
from tests.web.conftest import write

CYCLES = 400
DECIDED = 390


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Lengths as if a journal of 400 cycles were long."""
    monkeypatch.setattr(module, "LONG_BYTES", 20_000)
    monkeypatch.setattr(module, "END_BYTES", 20_000)
    monkeypatch.setattr(module, "SPREAD", 50)
    monkeypatch.setattr(module, "BLOCK", 50_000)


def long_journal(path, decided, *, cycles=CYCLES, resumed=None):
    records = [header(slo_s=30.0)]
    for number in range(cycles):
        if number == resumed:
            records.append(header(slo_s=7.0))
        own = number - (resumed if resumed is not None and number >= resumed else 0)
        if number in decided:
            records += [cycle(own, action="apply", target=4), outcome(own, 2, 4)]
        else:
            records.append(cycle(own, parallelism=4 if any(number > one for one in decided) else 2))
    return write(path / "journal.jsonl", *records)


def test_a_glimpse_has_the_whole_time_the_end_and_few_lines(tmp_path):
    state = glimpse(long_journal(tmp_path, {DECIDED}))
    assert 50 <= len(state.columns) < CYCLES / 2
    times_s = state.columns.picture(1000)["time_s"]
    assert times_s[0] < 0.05 * times_s[-1]
    assert times_s == sorted(times_s)
    assert state.last.cycle == CYCLES - 1
    assert [state.handles[one.row] for one in state.decisions]


def test_the_time_since_the_last_decision_is_in_it_too(tmp_path):
    times_s = glimpse(long_journal(tmp_path, {5})).columns.picture(1000)["time_s"]
    assert max(later - time_s for time_s, later in pairwise(times_s)) < 0.1 * times_s[-1]


@pytest.mark.parametrize("decided", [{5}, {150}, {300}, {5, 150, 300}, {DECIDED}, {5, DECIDED, DECIDED + 3}])
def test_the_last_decision_is_in_it_wherever_it_was_made(client_of, tmp_path, decided):
    client = client_of(long_journal(tmp_path, decided))
    (listed,) = client.get("/api/journals").json()["journals"]
    path = f"/api/journals/{listed['id']}"
    first = client.get(path).json()
    assert first["reading"] is not None
    assert first["costs"] is None
    assert first["cycles"] == CYCLES
    assert first["last_decision"]["cycle"] == max(decided)
    (shelf,) = client.library.shelves()
    shelf.refresh()
    then = client.get(path).json()
    assert then["reading"] is None
    assert then["edition"] != first["edition"]
    assert then["cycles"] == then["known_rows"] == CYCLES
    assert then["total"] == len(decided)
    assert then["verdict"] == first["verdict"]
    assert then["operators"] == first["operators"]
    assert {**then["last_decision"], "outcome": None} == {**first["last_decision"], "outcome": None}
    opened = client.get(f"{path}/decisions/{first['last_decision']['id']}").json()
    assert opened["cycle"] == max(decided)


def test_a_run_that_was_resumed_goes_on_in_time_under_its_own_header(tmp_path):
    state = glimpse(long_journal(tmp_path, {350}, resumed=200))
    times_s = state.columns.picture(1000)["time_s"]
    assert times_s == sorted(times_s)
    assert times_s[-1] > 15.0 * 350
    assert state.header.slo_s == 7.0


def test_short_journals_and_those_of_nobody_have_none(tmp_path):
    assert glimpse(write(tmp_path / "short.jsonl", header(), cycle(0), end())) is None
    assert glimpse(tmp_path / "none.jsonl") is None
    old = tmp_path / "old.jsonl"
    old.write_bytes(b'{"kind":"run","version":"0.1"}\n' * 10_000)
    assert glimpse(old) is None


def test_a_long_file_that_is_no_journal_is_read_to_its_end(tmp_path):
    odd = tmp_path / "odd.jsonl"
    odd.write_bytes(b"x" * 100_000 + b"\n" + b"y" * 100_000)
    assert glimpse(odd).last is None
    (shelf,) = Library([odd]).shelves()
    assert shelf.refresh().bad_lines == 1


def test_lines_that_are_no_records_do_not_stop_it(tmp_path):
    path = long_journal(tmp_path, {DECIDED})
    lines = path.read_bytes().split(b"\n")
    for place in range(3, len(lines) - 40, 3):
        lines[place] = b"\xff" * 700
    lines[20] = b"[" * 200_000
    path.write_bytes(b"\n".join(lines))
    state = glimpse(path)
    assert state.last.cycle == CYCLES - 1
    (shelf,) = Library([path]).shelves()
    whole = shelf.refresh()
    assert whole.bad_lines > 100
    assert whole.last.cycle == CYCLES - 1


def test_it_grows_while_it_is_read(tmp_path):
    path = long_journal(tmp_path, {DECIDED})
    (shelf,) = Library([path]).shelves()
    with shelf.reading():
        pass
    write(path, cycle(CYCLES))
    shelf.read_on()
    assert len(shelf.refresh().columns) == CYCLES + 1
