"""A driver made to be killed: runs a job with rescales to its verified end, unless it dies at a given moment.

python -m sluice.testing.exactly_once.driver ROOT JOB SEED MOMENT LIFE LIVES

MOMENT is one of `MOMENTS`. Started again with the same folder it goes on. Every life feeds its share of the records,
and those of the lives before under the same batch ids, so that they count once. The last life must end with exit code
0: its output was that of an independent computation.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sluice.spark.pipeline.query import OperatorQuery
from sluice.spark.topic.commits import CommitLog
from sluice.spark.topic.log import Topic
from sluice.testing.exactly_once.jobs import JOBS
from sluice.testing.exactly_once.rescaling import run_with_rescales

MOMENTS = ("never", "any time", "before a commit", "after a commit", "while trimming", "while rewriting state")
RECORDS_PER_LIFE = 1500
PIECES_PER_LIFE = 32
LAST_RESCALES = 2


def die() -> None:
    os.killpg(0, signal.SIGKILL)


def before(original: Callable[..., Any], action: Callable[..., None]) -> Callable[..., Any]:
    def patched(*args: Any, **options: Any) -> Any:
        action(*args)
        return original(*args, **options)

    return patched


def after(original: Callable[..., Any], action: Callable[..., None]) -> Callable[..., Any]:
    def patched(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        action(*args)
        return result

    return patched


def arrange_death(moment: str, random: np.random.Generator) -> None:
    """Commits of operators only: the feeder's would mean dying at the very start."""
    calls_left = int(random.integers(1, 3))

    def die_at_last_call(_self: object, producer: str = "", *_args: object) -> None:
        nonlocal calls_left
        calls_left -= producer not in ("test", "flush")
        if calls_left == 0:
            die()

    if moment == "before a commit":
        _patch(CommitLog, "append", before, die_at_last_call)
    elif moment == "after a commit":
        _patch(CommitLog, "append", after, die_at_last_call)
    elif moment == "while trimming":
        calls_left = 1
        _patch(Topic, "_sweep", before, die_at_last_call)
    elif moment == "while rewriting state":
        delay_s = float(random.uniform(0.0, 1.0))
        _patch(OperatorQuery, "rewrite_state", before, lambda *_: threading.Timer(delay_s, die).start())


def _patch(owner: type, method: str, wrap: Callable[..., Callable[..., Any]], action: Callable[..., None]) -> None:
    setattr(owner, method, wrap(getattr(owner, method), action))


def main() -> None:
    root, name, seed, moment = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    life, lives = int(sys.argv[5]), int(sys.argv[6])
    random = np.random.default_rng(seed)
    arrange_death(moment, random)
    job = next(job for job in JOBS if job.name == name)
    run_with_rescales(
        job,
        None,
        root,
        records=RECORDS_PER_LIFE * lives,
        rescales=LAST_RESCALES,
        how=lambda number: "live" if number % 2 else "repartition",
        seed=seed,
        pause_s=0.15,
        pieces=PIECES_PER_LIFE * lives,
        share=(life + 1) / lives,
    )


if __name__ == "__main__":
    main()
