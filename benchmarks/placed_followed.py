"""Do tasks run where the placement says, while DS2 rescales, CAPS places, and workers are killed and join?

    python -m benchmarks.placed_followed [--duration 120] [--kills 5] [--pipelines q3,q5]

Three workers of four slots as processes. A worker is killed with `kill -9` and started again some seconds later. Every
finished pipeline is kept in --out, and another call goes on with the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from sluice.journal.file import read_runs
from sluice.spark.cluster import lifecycle, standalone

WORKERS, SLOTS = 3, 4
AWAY_S = 5.0
FIRST_KILL_S = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=float, default=240.0, help="seconds of every run")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--pipelines", default="q3,q5")
    parser.add_argument("--out", type=Path, default=Path("placed-followed"))
    given = parser.parse_args()
    for pipeline in given.pipelines.split(","):
        done = given.out / pipeline / "result.json"
        if not done.exists():
            done.parent.mkdir(parents=True, exist_ok=True)
            done.write_text(json.dumps(measure(pipeline, given.out / pipeline, given.duration, given.kills)))
        print(f"{pipeline}: {done.read_text()}", flush=True)


def measure(pipeline: str, out: Path, duration_s: float, kills: int) -> dict[str, Any]:
    home = out.resolve() / "cluster"
    state = standalone.up(home, workers=WORKERS, slots=SLOTS)
    over = threading.Event()
    killer = threading.Thread(target=kill_and_revive, args=(home, kills, duration_s, over))
    try:
        killer.start()
        command = [sys.executable, "-c", "from sluice.cli import main; main()", "run", pipeline, "--engine", "spark"]
        command += ["--master", state.master_url, "--placement", "caps", "--policy", "ds2", "--json"]
        command += ["--root", str(out.resolve() / "work"), "--out", str(out), "--duration", str(duration_s)]
        command += ["--interval", "8", "--guard", "cooldown_s=8", "--seed", "1"]
        run = subprocess.run(command, capture_output=True, text=True)
    finally:
        over.set()
        killer.join()
        lifecycle.down(home)
    if run.returncode:
        return {"error": run.stderr.strip().splitlines()[-1:]}
    summary = json.loads(run.stdout)
    placed = [cycle.observation.placement for cycle in read_runs(out)[-1].cycles if cycle.observation.placement]
    return {
        "placement_followed": summary["placement_followed"],
        "placed_tasks": sum(one.placed for one in placed),
        "rescales": summary["rescales"],
        "lost": summary["lost_records"],
        "twice": summary["duplicated_records"],
        "throughput_ratio": summary["throughput_ratio"],
        "kills": kills,
    }


def kill_and_revive(home: Path, kills: int, duration_s: float, over: threading.Event) -> None:
    """Evenly spread, one worker after the other."""
    pause_s = max(AWAY_S, (duration_s - FIRST_KILL_S) / (kills + 1) - AWAY_S) if kills else 0.0
    if over.wait(FIRST_KILL_S):
        return
    for number in range(kills):
        state = lifecycle.read_state(home)
        if state is None or over.wait(pause_s):
            return
        os.kill(state.process_ids[f"worker-{number % WORKERS}"], signal.SIGKILL)
        over.wait(AWAY_S)
        lifecycle.revive(home)


if __name__ == "__main__":
    main()
