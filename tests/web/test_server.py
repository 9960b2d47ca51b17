"""The page as it is served: by an attachment without a file, by `sluice run`, and what it refuses to listen on."""

import json
import socket
import urllib.request

import pytest

from sluice.cli import main
from sluice.control.switches import Switchboard
from sluice.errors import BadInputError
from sluice.journal.file import MemoryJournal
from sluice.spark.attach.page import page_of
from sluice.web.library import Library
from sluice.web.lines import MemoryLines
from sluice.web.server import DashboardServer
from sluice.web.state import JournalState
from tests.journal.records import cycle, header
from tests.web.conftest import TOKEN


def ask(url, path):
    with urllib.request.urlopen(f"{url}{path}", timeout=10) as answer:
        return json.loads(answer.read())


def event(stream):
    while not (line := stream.readline()).startswith(b"data: "):
        pass
    return json.loads(line.removeprefix(b"data: "))


def test_an_attachment_without_a_file_is_shown_from_memory():
    journal = MemoryJournal(10)
    page = page_of(True, "127.0.0.1", 0, TOKEN)
    assert TOKEN not in repr(page)
    page.open(journal, "shop", Switchboard())
    try:
        for record in (header(engine="attach"), *(cycle(number) for number in range(30))):
            journal.append(record)
        (found,) = ask(page.url, "api/journals")["journals"]
        assert (found["title"], found["controls"]) == ("shop", True)
        assert ask(page.url, f"api/journals/{found['id']}")["cycles"] == 30
    finally:
        page.close()
    with pytest.raises(OSError, match="refused"):
        ask(page.url, "api/journals")


def test_memory_keeps_the_header_and_the_newest_lines():
    lines = MemoryLines(most=10)
    for record in (header(), *(cycle(number) for number in range(50))):
        lines.append(record.to_json().encode())
    state = JournalState(lines)
    state.refresh()
    assert state.header is not None
    assert (state.bad_lines, state.last.cycle) == (0, 49)
    assert len(state.columns) == 10


def test_events_tell_what_is_there_and_then_what_is_new():
    journal = MemoryJournal()
    page = page_of(True, "127.0.0.1", 0, None).open(journal, "shop", Switchboard())
    try:
        journal.append(header())
        journal.append(cycle(0))
        (found,) = ask(page.url, "api/journals")["journals"]
        path = f"api/journals/{found['id']}"
        edition = ask(page.url, path)["edition"]
        with urllib.request.urlopen(f"{page.url}{path}/events?edition={edition}&rows=0", timeout=30) as stream:
            assert event(stream)["rows"]["time_s"] == [15.0]
            journal.append(cycle(1))
            assert event(stream)["rows"]["time_s"] == [30.0]
    finally:
        page.close()


def test_a_port_that_is_taken_is_bad_input_unless_none_was_asked_for():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadInputError, match=f"port {taken.getsockname()[1]} of 127.0.0.1"):
            DashboardServer(Library(), port=taken.getsockname()[1])
    servers = [DashboardServer(Library()) for _ in range(2)]
    assert servers[0].port != servers[1].port
    for server in servers:
        server.close()


def test_a_run_with_a_page_ends_like_one_without(capsys, tmp_path):
    arguments = ["run", "q1", "--duration", "600", "--seed", "1", "--json"]
    printed = []
    for more in ([], ["--dashboard", "--dashboard-port", "0"]):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *more])
        assert ended.value.code == 0
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out
    assert printed[1].err.startswith("dashboard: http://127.0.0.1:")
