"""The page in a real browser: a run watched as it is written, controls used, past runs opened, a clean console."""

import json
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice.control.decider import Decider
from sluice.control.switches import Switchboard
from sluice.journal.file import FileJournal, read_journal
from sluice.journal.records import Choice, Intervention
from sluice.lab.pipelines import pipelines
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.workloads import workloads
from sluice.protocol import policies
from sluice.web.app import PageSettings
from sluice.web.library import Library
from sluice.web.server import DashboardServer, watched_journal
from tests.journal.records import cycle, header, outcome
from tests.web.conftest import TOKEN, write

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
ARTIFACTS = Path(__file__).parents[1] / "artifacts"
PATIENCE_MS = 60_000
EVIL = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Opens a page; at the end nothing may stand on its console."""
    contexts, said = [], []

    def open_page(url, *, size=(1280, 900), scheme="light"):
        context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # a refused control is on the console by the browser's own hand
    assert [text for text in said if "status of 401" not in text] == []


@pytest.fixture
def served():
    servers = []

    def serve(library, **settings):
        servers.append(DashboardServer(library, PageSettings(**settings), port=0))
        return servers[-1].url

    yield serve
    for server in servers:
        server.close()


class LiveRun:
    """A run on the simulator that waits for the test at every window, as a run on Spark waits for time."""

    def __init__(self, folder):
        self.path = folder / "journal.jsonl"
        self.switches = Switchboard(lambda name, settings: Decider(policies.create(name, settings)))
        self.library = Library()
        self._windows = threading.Semaphore(0)
        self._done = threading.Semaphore(0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        names = {"pipeline": "q1", "policy": "conttune", "workload": "cosine"}
        spec = RunSpec(
            pipeline=pipelines.create("q1"),
            policy=policies.create("conttune"),
            workload=workloads.create("cosine"),
            choices={kind: Choice(name=name) for kind, name in names.items()},
            duration_s=36_000.0,
            seed=1,
        )
        engine, initial = simulated_engine(spec)
        journal = FileJournal(self.path, durable=False)
        watched_journal(journal, self.library, "q1", self.switches)
        run(
            spec,
            engine,
            initial,
            journal,
            on_report=self._wait,
            should_stop=self._ended.is_set,
            switches=self.switches,
        )

    def _wait(self, report):
        self._done.release()
        self._windows.acquire()

    def start(self):
        self._thread.start()
        self._done.acquire()

    def go(self, windows):
        for _ in range(windows):
            self._windows.release()
            self._done.acquire()

    def stop(self):
        self._ended.set()
        self._windows.release()
        self._thread.join(30)


@pytest.fixture
def live(tmp_path):
    found = LiveRun(tmp_path)
    found.start()
    yield found
    found.stop()


def until(page, condition, patience_ms=PATIENCE_MS):
    """Asks again until it holds; Playwright's own way needs eval, which the page forbids."""
    for _ in range(patience_ms // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within {patience_ms} ms: {condition}")


def slots(page):
    return page.inner_text("#facts dd").split(" ")[0]


def press(page, control, waits_for):
    page.click(f'[data-control="{control}"]')
    until(page, f"document.getElementById('controls-said').textContent.includes({json.dumps(waits_for)})")


def test_a_run_is_watched_paused_pinned_and_resumed(live, served, opened):
    page = opened(served(live.library, token=TOKEN))
    before = slots(page)
    for windows in range(20, 400, 20):
        live.go(20)
        until(page, f"document.body.dataset.cycles > {windows}")
        if slots(page) != before:
            break
    assert slots(page) != before
    assert "conttune" in page.inner_text("#reason")

    page.click("#controls-open")
    press(page, "pause", "Authorization")
    page.fill("#token", "not the token")
    press(page, "pause", "not the one")
    page.fill("#token", TOKEN)
    press(page, "pause", "accepted")
    page.click("#controls-close")
    live.go(1)
    until(page, "document.getElementById('live').textContent === 'paused'")
    assert "paused by hand" in page.inner_text("#now")

    page.click("#controls-open")
    page.select_option("#pin-operator", index=0)
    page.fill("#pin-count", "9")
    press(page, "pin", "accepted")
    press(page, "resume", "accepted")
    page.click("#controls-close")
    live.go(40)
    until(page, "document.querySelector('#graph').textContent.includes('\\u00d79')")
    until(page, "document.getElementById('live').textContent.includes('live')")
    uses = [record.sentence() for record in read_journal(live.path) if isinstance(record, Intervention)]
    assert uses[0] == "pause"
    assert uses[2] == "resume"
    assert uses[1].endswith("to 9")
    page.wait_for_selector("#decisions .hand")


def test_a_decision_opens_by_keyboard_and_charts_tell_their_figures(live, served, opened):
    live.go(60)
    page = opened(served(live.library))
    page.focus("#decisions button")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail[open]")
    assert page.locator("#detail-body tbody tr").count() == 3
    page.click("#detail-body summary")
    assert '"kind": "cycle"' in page.inner_text("#detail-body")
    page.keyboard.press("Escape")
    page.wait_for_selector("#detail", state="hidden")
    page.focus("#chart-latency svg")
    page.keyboard.press("Home")
    assert "at 0:15" in page.inner_text("#chart-latency .legend")
    assert page.get_attribute("#chart-load svg", "aria-valuetext").startswith("at 0:15: arrives ")
    assert page.locator("#curves svg .line").count() > 0


def test_the_focus_stays_where_it_is_while_the_page_changes(live, served, opened):
    live.go(30)
    page = opened(served(live.library))
    focused = "document.activeElement.dataset.key"
    for place in ("#graph [data-key]", "#decisions button"):
        page.focus(place)
        key = page.evaluate(focused)
        cycles = int(page.evaluate("document.body.dataset.cycles"))
        live.go(5)
        until(page, f"document.body.dataset.cycles >= {cycles + 5}")
        assert page.evaluate(focused) == key


def test_a_long_journal_is_there_before_it_is_read_and_whole_after(tmp_path, served, opened, monkeypatch):
    monkeypatch.setattr("sluice.web.glimpse.LONG_BYTES", 100_000)
    monkeypatch.setattr("sluice.web.glimpse.END_BYTES", 50_000)
    goes_on = threading.Event()
    monkeypatch.setattr("sluice.web.shelf.time", SimpleNamespace(time=time.time, sleep=lambda _: goes_on.wait(60)))
    acts = [cycle(990, action="apply", target=4), outcome(990, 2, 4)]
    cycles = [cycle(number) for number in range(1000) if number != 990]
    path = write(tmp_path / "journal.jsonl", header(slo_s=30.0), *cycles[:990], *acts, *cycles[990:])
    page = opened(served(Library([path])))
    assert "1,000 decisions" in page.inner_text("#job")
    assert "source 2 \u2192 4" in page.inner_text("#change")
    assert "Reading the whole journal" in page.inner_text("#reading")
    assert "Counted when" in page.inner_text("#costs")
    goes_on.set()
    until(page, "document.getElementById('reading').hidden")
    assert "slot-hours" in page.inner_text("#costs")
    assert "1,000 decisions" in page.inner_text("#job")
    assert page.inner_text("#decisions-title") == "Decisions (1)"


def test_past_runs_and_journals_of_attach_are_opened(tmp_path, served, opened):
    write(tmp_path / "past" / "journal.jsonl", header(slo_s=30.0), cycle(0), cycle(1, action="apply"), outcome(1, 2, 4))
    shared = {"engine": "attach", "settings": {"max_executors": 8}}
    write(tmp_path / "job.jsonl", header(**shared), cycle(0, names=("counts", "<b>joins</b>"), parallelism=3))
    page = opened(served(Library([tmp_path])))
    options = {node.inner_text(): node.get_attribute("value") for node in page.locator("#journal option").all()}
    for title, says in (("past", "q1 on sim"), ("job.jsonl", "q1 on attach")):
        key = next(value for text, value in options.items() if text.startswith(title))
        page.select_option("#journal", key)
        page.wait_for_selector(f'body[data-ready="{key}"]')
        assert says in page.inner_text("#job")
    assert "All queries share" in page.inner_text("#graph")
    assert "executor-hours" in page.inner_text("#costs")


def test_hostile_text_stays_text(tmp_path, served, opened):
    bad = cycle(0, names=(EVIL, "__proto__"), action="apply", notes=(EVIL,), problem=EVIL)
    bad = bad.model_copy(update={"recommendation": bad.recommendation.model_copy(update={"reason": EVIL})})
    path = write(
        tmp_path / "journal.jsonl", header(pipeline=Choice(name=EVIL)), bad, outcome(0, 1, 2, names=(EVIL, "__proto__"))
    )
    path.write_bytes(path.read_bytes() + EVIL.encode() + b"\n\xff\xfe\n")
    page = opened(served(Library([path])))
    assert EVIL in page.inner_text("#reason")
    assert EVIL in page.inner_text("#bad-lines")
    page.click("#decisions button")
    page.wait_for_selector("#detail[open]")
    assert page.evaluate("window.harmed") is None
    assert page.locator("main img, main script, dialog img, dialog script").count() == 0


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("light", (1280, 900), "light"),
        ("dark", (1280, 900), "dark"),
        ("phone", (360, 780), "dark"),
        ("4k", (3840, 2160), "light"),
    ],
)
def test_it_fits_every_screen_and_a_picture_is_kept(live, served, opened, name, size, scheme):
    live.go(80)
    page = opened(served(live.library, price=0.25), size=size, scheme=scheme)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"dashboard-{name}.png", full_page=True)
