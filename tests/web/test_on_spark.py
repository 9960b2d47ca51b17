"""A live run on Spark, watched in a browser: slots change on the page as they change in the job."""

import json
import signal
import subprocess
import sys

import pytest

from sluice.journal.file import read_journal, read_runs
from sluice.journal.records import Intervention
from tests.web.conftest import TOKEN
from tests.web.test_browser import CHROMIUM, chromium, opened, press, slots, until

__all__ = ["chromium", "opened"]
pytestmark = [pytest.mark.spark, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]
OPERATOR = "splitter"
STARTS_MS = 240_000
"""A session, a generator and the first window, on a busy machine."""


@pytest.fixture
def running(java, tmp_path):
    """`sluice run --dashboard` in a process of its own, as people start it; its address."""
    command = [
        sys.executable,
        "-c",
        "from sluice.cli import main; main()",
        "run",
        "wordcount",
        "--engine",
        "spark",
        "--policy",
        "static",
    ]
    command += ["--workload", "constant", "--pipeline-set", "peak_rate=10000", "--interval", "2", "--duration", "900"]
    command += ["--guard", "cooldown_s=0", "--spark-set", "slots=6", "--out", str(tmp_path / "out")]
    command += ["--dashboard", "--dashboard-port", "0", "--dashboard-token", TOKEN, "--json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    assert first.startswith("dashboard: http"), first + process.stderr.read()
    yield first.split()[1], process
    if process.poll() is None:
        process.kill()
        process.communicate()


def test_slots_change_on_the_page_as_they_do_on_spark(running, opened, tmp_path):
    url, process = running
    page = opened(url)
    until(page, "document.body.dataset.cycles >= 1", STARTS_MS)
    before = slots(page)
    page.click("#controls-open")
    page.fill("#token", TOKEN)
    press(page, "pause", "accepted")
    page.select_option("#pin-operator", OPERATOR)
    page.fill("#pin-count", "3")
    press(page, "pin", "accepted")
    page.click("#controls-close")
    until(page, "document.getElementById('live').textContent === 'paused'")
    until(page, f"document.querySelector('#facts dd').textContent !== {json.dumps(before)}")
    until(page, "document.querySelector('#decisions button') !== null")
    page.click("#decisions button")
    page.wait_for_selector("#detail[open]")
    page.click("#detail-close")
    page.click("#controls-open")
    press(page, "resume", "accepted")
    page.click("#controls-close")
    until(page, "document.getElementById('live').textContent.includes('live')")
    page.context.close()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    uses = [one.control for one in read_journal(tmp_path / "out" / "journal.jsonl") if isinstance(one, Intervention)]
    assert uses == ["pause", "pin", "resume"]
    (run,) = read_runs(tmp_path / "out")
    assert run.cycles[-1].target.parallelism[OPERATOR] == 3
