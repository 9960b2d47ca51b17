"""Kills a driver with `kill -9` again and again, each time at another moment, and lets the last one finish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

LONGEST_LIFE_S = 400.0


def kill_and_finish(
    root: Path, job: str, moments: Sequence[str], *, seed: int, say: Callable[[str], None] = lambda _line: None
) -> list[str]:
    """Run a driver to its death at each of the moments, then one that must end well; the fate of each."""
    random = np.random.default_rng(seed)
    fates = []
    for number, moment in enumerate([*moments, "never"]):
        began_s = time.monotonic()
        life_s = float(random.uniform(8.0, 30.0)) if moment == "any time" else LONGEST_LIFE_S
        life = [moment, str(number), str(len(moments) + 1)]
        driver = subprocess.Popen(
            [sys.executable, "-m", "sluice.testing.exactly_once.driver", str(root), job, str(seed + number), *life],
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            output, _ = driver.communicate(timeout=life_s)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            output, _ = driver.communicate()
        if driver.returncode not in (0, -signal.SIGKILL):
            raise AssertionError(f"driver {number} ({moment}) failed:\n{output[-6000:]}")
        fate = "ended well" if driver.returncode == 0 else "killed"
        fates.append(fate)
        say(f"{job}: driver {number}, to die {moment}: {fate} after {time.monotonic() - began_s:.0f} s")
    assert fates[-1] == "ended well", fates
    return fates
