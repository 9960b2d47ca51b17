"""How soon a page over a long journal is there, and whether it freezes while the journal grows; measured in Chromium.

`python -m benchmarks.dashboard` writes 100,000 cycles of a simulated run; `--cycles 5000` is the short form.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sluice.cli import main as sluice
from sluice.web.library import Library
from sluice.web.server import DashboardServer

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
STREAMED = 200
GAPS = """() => {
  window.gaps = []; let last = performance.now();
  const look = () => {
    const now = performance.now(); window.gaps.push(now - last); last = now; requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def write_long(folder: Path, cycles: int) -> tuple[Path, list[dict[str, Any]]]:
    """A run of some hours, repeated with its time going on; also its records, for more of the same."""
    with suppress(SystemExit):
        sluice(["run", "q11", "--duration", "3h", "--seed", "1", "--out", str(folder / "seed"), "--json"])
    head, *lines = (folder / "seed" / "journal.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines[:-1]]
    path = folder / "long" / "journal.jsonl"
    path.parent.mkdir()
    with open(path, "w") as file:
        file.write(head + "\n")
        number = 0
        while number < cycles:
            number = append(file, records, number, cycles)
    return path, records


def append(file: Any, records: list[dict[str, Any]], number: int, until: int) -> int:
    """Records once more, numbered on; the number of cycles there are then."""
    for record in records:
        if record["kind"] == "cycle":
            if number >= until:
                return number
            time_s = 15.0 * (number + 1)
            record = {**record, "cycle": number, "time_s": time_s}
            record["observation"] = {**record["observation"], "time_s": time_s}
            number += 1
        else:
            record = {**record, "cycle": number - 1, "time_s": 15.0 * number}
        file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return number


def measure(path: Path, records: list[dict[str, Any]], cycles: int) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    chromium = next(found for name in ("chromium", "google-chrome") if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        server = DashboardServer(Library([path]), port=0)
        page = browser.new_page()
        # the browser itself starts here, not in what is measured
        page.goto(f"{server.url}assets/icon.svg")
        opened = []
        for _ in ("cold", "warm"):
            began = time.perf_counter()
            page.goto(server.url)
            page.wait_for_selector("body[data-ready]")
            opened.append(time.perf_counter() - began)
        page.evaluate(GAPS)
        with open(path, "a") as file:
            number = cycles
            while number < cycles + STREAMED:
                number = append(file, records[number % 50 : number % 50 + 20], number, cycles + STREAMED)
                file.flush()
                page.wait_for_timeout(100)
        while int(page.evaluate("document.body.dataset.cycles")) < cycles + STREAMED:
            page.wait_for_timeout(50)
        gaps = sorted(page.evaluate("window.gaps"))
        server.close()
        browser.close()
    return {
        "megabytes": path.stat().st_size / 1e6,
        "open_cold_s": opened[0],
        "open_warm_s": opened[1],
        "longest_frame_ms": gaps[-1],
        "p99_frame_ms": gaps[int(0.99 * (len(gaps) - 1))],
    }


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100_000)
    cycles = parser.parse_args().cycles
    with tempfile.TemporaryDirectory() as folder:
        found = measure(*write_long(Path(folder), cycles), cycles)
    print(json.dumps({"cycles": cycles, **{name: round(value, 3) for name, value in found.items()}}, indent=2))


if __name__ == "__main__":
    run()
