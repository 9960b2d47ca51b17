"""Journals to look at, and a page over them without a network."""

import pytest
from starlette.testclient import TestClient

from sluice.control.decider import Decider
from sluice.control.loop import Loop
from sluice.control.switches import Switchboard
from sluice.journal.file import FileJournal
from sluice.protocol import policies
from sluice.web.app import Page, PageSettings
from sluice.web.library import Library
from sluice.web.lines import FileLines
from tests.control.fakes import FakeEngine, Scripted
from tests.journal.records import cycle, end, header, outcome

TOKEN = "a-token-of-the-tests"


def write(path, *records):
    journal = FileJournal(path, durable=False)
    for record in records:
        journal.append(record)
    journal.close()
    return path


@pytest.fixture
def journal(tmp_path):
    """Three windows, one action, an end."""
    return write(
        tmp_path / "one" / "journal.jsonl",
        header(slo_s=30.0),
        cycle(0, latency_s=40.0),
        cycle(1, action="apply", target=4),
        outcome(1, 2, 4),
        cycle(2, parallelism=4),
        end(),
    )


@pytest.fixture
def client_of():
    def make(*places, token=TOKEN, library=None, **settings):
        library = library or Library(places)
        app = Page(library, PageSettings(token=token, **settings)).application()
        client = TestClient(app, base_url="http://127.0.0.1:8642")
        client.library = library
        return client

    return make


class LiveLoop:
    """A loop of this process, cycled by hand."""

    def __init__(self, path):
        self.switches = Switchboard(lambda name, settings: Decider(policies.create(name, settings)))
        self.engine = FakeEngine()
        self.journal = FileJournal(path, durable=False)
        self.journal.append(header())
        self.loop = Loop(engine=self.engine, decider=Decider(Scripted(3)), journal=self.journal, switches=self.switches)
        self.library = Library()
        self.shelf = self.library.add("live", FileLines(path), path=path, switches=self.switches)

    def run(self, cycles, before_cycle):
        """`before_cycle(number)` is called as the window goes by, as a person would click."""
        numbers = iter(range(cycles))
        sleep_s = self.engine.sleep_s

        def sleep(duration_s):
            before_cycle(next(numbers))
            sleep_s(duration_s)

        self.engine.sleep_s = sleep
        from sluice.model import Target

        self.loop.run(Target(parallelism={"a": 1}), duration_s=10.0 * cycles, interval_s=10.0)


@pytest.fixture
def live(tmp_path):
    return LiveLoop(tmp_path / "live" / "journal.jsonl")
