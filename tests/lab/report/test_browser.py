"""The report in a real browser: nothing on the console, plots drawn, controls that work; a screenshot is kept."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sluice.lab.report.content import collect
from sluice.lab.report.page import page
from tests.journal.records import cycle, header

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
ARTIFACTS = Path(__file__).parents[2] / "artifacts"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]


class Browser:
    """One page load per call; `script` runs after the page's own."""

    def __init__(self, folder):
        self._folder = folder

    def open(self, html, *, script="", size=(1200, 2400), screenshot=None):
        path = self._folder / "page.html"
        path.write_text(html.replace("</body>", f"<script>{script}</script></body>"))
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command += [f"--user-data-dir={self._folder / 'profile'}", f"--window-size={size[0]},{size[1]}"]
        command += ["--virtual-time-budget=20000", "--enable-logging=stderr"]
        command += [f"--screenshot={screenshot}"] if screenshot else ["--dump-dom"]
        ran = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=240, check=True)
        return ran.stdout, [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture
def browser(tmp_path):
    return Browser(tmp_path)


@pytest.fixture(scope="module")
def html(bench_folder):
    return page(collect([bench_folder]))


def test_an_error_would_be_seen(browser):
    _, console = browser.open("<body></body>", script="nobody.knows()")
    assert any("nobody is not defined" in line for line in console)


def test_plots_are_drawn_and_the_console_is_silent(browser, html):
    dom, console = browser.open(html)
    assert console == []
    assert 'data-ready="yes"' in dom
    pareto, timeline = dom.split('id="timeline"')
    assert len(re.findall(r'class="trace scatter', pareto)) == 3
    assert len(re.findall(r'class="trace scatter', timeline)) >= 8
    assert "over-provisioning" in timeline or "arrive" in timeline


def test_a_single_run_begins_with_its_time_line(browser, html, run_folder):
    alone, _ = browser.open(page(collect([run_folder])))
    several, _ = browser.open(html)
    assert alone.index('id="timeline"') < alone.index('id="pareto"')
    assert several.index('id="pareto"') < several.index('id="timeline"')


def test_an_attachment_begins_with_what_it_saved_and_draws_no_objective_it_has_not(browser, tmp_path):
    records = [header(engine="attach", slo_s=None), *(cycle(number) for number in range(4))]
    (tmp_path / "journal.jsonl").write_text("".join(record.to_json() + "\n" for record in records))
    dom, console = browser.open(page(collect([tmp_path])))
    assert console == []
    assert dom.index("What it saved") < dom.index('id="timeline"') < dom.index('id="pareto"')
    assert ">latency</text>" in dom
    assert ">objective</text>" not in dom


def test_choosing_a_case_redraws_plot_table_and_time_line(browser, html):
    choose = """
        const select = document.getElementById("case");
        select.value = "sim|q1|convergence";
        select.dispatchEvent(new Event("change"));
    """
    dom, console = browser.open(html, script=choose)
    assert console == []
    runs = dom[dom.index('id="run"') : dom.index('id="beside"')]
    assert "convergence" in runs
    assert "cosine" not in runs
    assert "p (Wilcoxon)" in dom


def test_it_fits_a_phone_and_a_picture_is_kept(browser, html):
    measure = "document.title = 'wide ' + (document.documentElement.scrollWidth - document.documentElement.clientWidth)"
    dom, _ = browser.open(html, script=measure, size=(500, 2400))
    assert "<title>wide 0</title>" in dom
    ARTIFACTS.mkdir(exist_ok=True)
    for name, size in {"report": (1200, 2400), "report-phone": (500, 2600)}.items():
        picture = ARTIFACTS / f"{name}.png"
        picture.unlink(missing_ok=True)
        browser.open(html, size=size, screenshot=picture)
        assert picture.stat().st_size > 20_000
