"""Pages that watch: many of them, slow ones, and those that come back; and what is never written to a log."""

import json
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from sluice.web.app import PageSettings
from sluice.web.library import Library
from sluice.web.server import DashboardServer
from tests.journal.records import cycle, header
from tests.web.conftest import TOKEN, write


@pytest.fixture
def served(tmp_path):
    path = write(tmp_path / "journal.jsonl", header(), cycle(0))
    server = DashboardServer(Library([path]), PageSettings(token=TOKEN), port=0)
    with urllib.request.urlopen(f"{server.url}api/journals", timeout=10) as answer:
        (found,) = json.loads(answer.read())["journals"]
    yield server, path, f"{server.url}api/journals/{found['id']}"
    server.close()


def received(stream):
    """The next event: its id and its data."""
    found = {}
    while line := stream.readline().strip():
        name, _, value = line.partition(b": ")
        if name:
            found[name.decode()] = value
    return found["id"].decode(), json.loads(found["data"])


def watch(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30)


def edition(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        data = json.loads(answer.read())
    return data["edition"], data["known_rows"]


def test_many_pages_hear_the_same_while_slow_ones_hear_nothing(served):
    server, path, url = served
    known, rows = edition(url)
    with ExitStack() as stack:
        for _ in range(10):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            slow.sendall(
                f"GET {url.partition(str(server.port))[2]}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            )
        for _ in range(10):
            unfinished = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            unfinished.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
        streams = [stack.enter_context(watch(f"{url}/events?edition={known}&rows={rows}")) for _ in range(40)]
        assert {received(stream)[1]["known_rows"] for stream in streams} == {1}
        write(path, cycle(1))
        assert {tuple(received(stream)[1]["rows"]["time_s"]) for stream in streams} == {(30.0,)}


def test_who_comes_back_gets_each_row_once(served):
    _, path, url = served
    known, rows = edition(url)
    first = f"{url}/events?edition={known}&rows={rows}"
    write(path, cycle(1), cycle(2))
    with watch(first) as stream:
        place, data = received(stream)
        assert data["rows"]["time_s"] == [30.0, 45.0]
    write(path, cycle(3))
    with watch(first, **{"Last-Event-ID": place}) as stream:
        assert received(stream)[1]["rows"]["time_s"] == [60.0]
    for odd in ("", "x", "1.2.3", "-1.5", "9" * 40 + ".1", "\u00b2.1"):
        with watch(first, **{"Last-Event-ID": odd.encode("latin-1", "replace").decode("latin-1")}) as stream:
            received(stream)


def test_a_journal_that_begins_anew_is_loaded_anew(served):
    _, path, url = served
    known, rows = edition(url)
    path.replace(path.with_name("journal.jsonl.1"))
    write(path, header(), *(cycle(number) for number in range(5)))
    with watch(f"{url}/events?edition={known}&rows={rows}") as stream:
        assert received(stream)[1]["anew"] is True


def test_more_pages_than_there_is_room_for_are_told(served, monkeypatch):
    monkeypatch.setattr("sluice.web.app.MOST_STREAMS", 2)
    _, _, url = served
    with watch(f"{url}/events") as one, watch(f"{url}/events") as two:
        received(one)
        received(two)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            watch(f"{url}/events")


def test_nothing_that_is_asked_is_logged(served, capfd, caplog):
    server, _, _ = served
    answers = []
    for path in (f"/?token={TOKEN}", f"/api/control/pause?token={TOKEN}", f"/{TOKEN}"):
        request = urllib.request.Request(f"{server.url}{path[1:]}", headers={"authorization": f"Bearer {TOKEN}x"})
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except urllib.error.HTTPError as error:
            answers.append(error.read().decode())
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(f"GET /{TOKEN} nonsense\r\n\r\n".encode())
        raw.recv(1000)
    said = capfd.readouterr()
    assert len(answers) == 2
    assert TOKEN not in said.out + said.err + caplog.text + "".join(answers)


@pytest.mark.parametrize(
    ("path", "mode", "dest", "status"),
    [
        ("/", "navigate", "document", 200),
        ("/", "navigate", "iframe", 403),
        ("/", "no-cors", "script", 403),
        ("/api/journals", "navigate", "document", 403),
        ("/metrics", "cors", "empty", 403),
    ],
)
def test_a_link_elsewhere_opens_the_page_and_nothing_else(client_of, journal, path, mode, dest, status):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    assert client_of(journal).get(path, headers=headers).status_code == status
