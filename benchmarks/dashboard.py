"""How soon a page over a long journal is there, and whether it freezes while the journal grows; measured in Chromium.

`python -m benchmarks.dashboard` writes 100,000 cycles of a simulated run of five operators, with reasons, learned
curves and a shadow policy, some 570 MB; `--cycles 5000` is the short form. The same page over 500 of them is measured
beside it. `sluice dashboard` is a process of its own, as people start it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from sluice.cli import main as sluice

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
RUN = ["run", "q3", "--policy", "conttune", "--shadow", "ds2", "--duration", "3h", "--seed", "1", "--json"]
INTERVAL_S = 15.0
SHORT = 500
STREAMED = 200
WATCHED = """
  window.tasks = []; window.gaps = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.tasks.push(one.duration);
  }).observe({ type: "longtask" });
  let last = performance.now();
  const look = () => {
    const now = performance.now(); window.gaps.push(now - last); last = now; requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  new MutationObserver(() => {
    if (document.body?.dataset.ready && !window.drawn) requestAnimationFrame(() => requestAnimationFrame(() => {
      window.drawn = performance.now();
    }));
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"] });
"""
"""Runs before the page: tasks over 50 ms, the time between frames, and when the page was drawn after navigation."""


def seed_records(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """The header and the records of a run of some hours."""
    with suppress(SystemExit), redirect_stdout(StringIO()):
        sluice([*RUN, "--out", str(folder / "seed")])
    head, *lines = (folder / "seed" / "journal.jsonl").read_text().splitlines()
    return head, [json.loads(line) for line in lines[:-1]]


def write_long(path: Path, head: str, records: list[dict[str, Any]], cycles: int) -> None:
    """The run repeated, its time going on."""
    path.parent.mkdir()
    with open(path, "w") as file:
        file.write(head + "\n")
        number = 0
        while number < cycles:
            number = append(file, records, number, cycles)


def append(file: Any, records: list[dict[str, Any]], number: int, until: int) -> int:
    """Records once more, numbered on; the number of cycles there are then."""
    for record in records:
        if record["kind"] == "cycle":
            if number >= until:
                return number
            time_s = INTERVAL_S * (number + 1)
            record = {**record, "cycle": number, "time_s": time_s}
            record["observation"] = {**record["observation"], "time_s": time_s}
            number += 1
        else:
            record = {**record, "cycle": number - 1, "time_s": INTERVAL_S * number}
        file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return number


class Served:
    """`sluice dashboard` on one journal."""

    def __init__(self, path: Path) -> None:
        began_s = time.perf_counter()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from sluice.cli import main; main()",
                "dashboard",
                str(path),
                "--port",
                "0",
                "--json",
            ],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.url = str(json.loads(self.process.stdout.readline())["url"])
        self.start_s = time.perf_counter() - began_s

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)


def opened(browser: Any, path: Path) -> tuple[Any, Served, dict[str, float]]:
    """A page, drawn; how long its server took to listen, it took to be drawn, and all of it took to be read."""
    served = Served(path)
    page = browser.new_page()
    page.add_init_script(WATCHED)
    began_s = time.perf_counter()
    page.goto(served.url)
    _until(page, "window.drawn > 0")
    drawn_s = page.evaluate("window.drawn / 1000")
    _until(page, "document.getElementById('reading').hidden")
    figures = {"server_start_s": served.start_s, "drawn_s": drawn_s, "read_s": time.perf_counter() - began_s}
    return page, served, {**figures, **_longest(page)}


def streamed(page: Any, path: Path, records: list[dict[str, Any]], cycles: int) -> dict[str, float]:
    """While the journal grows by so many cycles, ten at a time."""
    _longest(page)
    with open(path, "a") as file:
        number = cycles
        while number < cycles + STREAMED:
            number = append(file, records[number % 50 : number % 50 + 20], number, min(number + 10, cycles + STREAMED))
            file.flush()
            page.wait_for_timeout(100)
    _until(page, f"document.body.dataset.cycles == {cycles + STREAMED}")
    return _longest(page)


def _longest(page: Any) -> dict[str, float]:
    """Since it was last asked."""
    tasks, gaps = page.evaluate("(() => { const found = [tasks, gaps]; tasks = []; gaps = []; return found; })()")
    gaps = sorted(gaps) or [0.0]
    return {
        "longest_task_ms": max(tasks, default=0.0),
        "longest_frame_ms": gaps[-1],
        "p99_frame_ms": gaps[int(0.99 * (len(gaps) - 1))],
    }


def _until(page: Any, condition: str) -> None:
    while not page.evaluate(condition):
        page.wait_for_timeout(20)


def measure(folder: Path, cycles: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    head, records = seed_records(folder)
    chromium = next(found for name in ("chromium", "google-chrome") if (found := shutil.which(name)))
    results: dict[str, Any] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, count in (("warm_up", SHORT), ("short", SHORT), ("long", cycles)):
            path = folder / name / "journal.jsonl"
            write_long(path, head, records, count)
            page, served, figures = opened(browser, path)
            streaming = streamed(page, path, records, count)
            results[name] = {"cycles": count, "megabytes": path.stat().st_size / 1e6, **figures, "streaming": streaming}
            page.close()
            served.close()
        browser.close()
    # the first page also starts parts of the browser
    results.pop("warm_up")
    results["drawn_ratio"] = results["long"]["drawn_s"] / results["short"]["drawn_s"]
    return results


def _rounded(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    return round(data, 3) if isinstance(data, float) else data


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the journals are written; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        print(json.dumps(_rounded(measure(Path(folder), given.cycles)), indent=2))


if __name__ == "__main__":
    run()
