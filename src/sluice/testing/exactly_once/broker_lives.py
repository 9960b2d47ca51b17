"""Standard queries over a broker while drivers are killed with `kill -9` and the broker dies and comes back.

python -m sluice.testing.exactly_once.broker_lives ROOT URL QUERY EVENTS RESCALES SEED SHARE is one driver: it brings
the records that are not there yet, up to this share of all, and rescales at random. One that brings the last ends with
exit code 0 if a consumer that knows nothing of sluice finds exactly the answer of another engine in the output topic.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sluice.spark.cluster import lifecycle
from sluice.spark.cluster.workers import alive_workers
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.store import KafkaTopics
from sluice.testing.answers.check import check_query
from sluice.testing.answers.reference import ANSWERS
from sluice.testing.kafka import read_frame

LONGEST_LIFE_S = 400.0
LONGEST_WORK_S = 10.0
"""A driver that is to be killed lives so long beyond its first batch at most."""
BLOCK_PAUSE_S = 1.5
"""Between 60 blocks, of which each driver brings its share."""
RESCALED = "rescaled to"


@dataclass(frozen=True, kw_only=True)
class Lives:
    """How a query is to be tortured."""

    query: str
    events: int
    rescales: int
    kills: int
    broker_restarts: int
    seed: int


def run_lives(lives: Lives, root: Path, broker_home: Path, say: Callable[[str], None]) -> int:
    """Kill driver after driver, and the broker in some of their lives; the last driver must end well.

    Returns the number of rescales, all of them while records flow: at least as many as were to be.
    """
    random = np.random.default_rng(lives.seed)
    restarts_in = set(random.permutation(lives.kills + 1)[: lives.broker_restarts].tolist())
    state = lifecycle.read_state(broker_home)
    assert state is not None, "no broker"
    url = Broker(bootstrap=state.master_url, prefix=f"{lives.query}-{lives.seed}-{int(time.time())}").url
    rescales = 0
    for number in range(lives.kills + 1):
        began_s = time.monotonic()
        words = [str(root), url, lives.query, str(lives.events), str(lives.rescales), str(lives.seed + number)]
        words.append(str((number + 1) / (lives.kills + 1)))
        with open(root.with_suffix(f".{number}.log"), "w+") as log:
            driver = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, *words], start_new_session=True, stdout=log, stderr=log
            )
            try:
                _await_batches(driver, root, since_s=time.time())
                if number in restarts_in:
                    time.sleep(float(random.uniform(0.0, 3.0)))
                    restart_broker(broker_home)
                    say(f"{lives.query}: broker killed and started again in the life of driver {number}")
                patience_s = float(random.uniform(1.0, LONGEST_WORK_S)) if number < lives.kills else LONGEST_LIFE_S
                driver.wait(patience_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
                    driver.wait()
            log.seek(0)
            text = log.read()
        due = -signal.SIGKILL if number < lives.kills else 0
        assert driver.returncode == due, f"driver {number} ended with {driver.returncode}, not {due}:\n{text[-6000:]}"
        done = text.count(RESCALED)
        rescales += done
        fate = "ended well" if due == 0 else "killed"
        say(f"{lives.query}: driver {number} {fate} after {time.monotonic() - began_s:.0f} s, {done} rescales")
    assert rescales >= lives.rescales, f"{rescales} rescales, not {lives.rescales}"
    return rescales


def restart_broker(home: Path) -> None:
    """`kill -9`; its supervisor starts it again on the same data."""
    state = lifecycle.read_state(home)
    assert state is not None, "no broker"
    os.kill(state.process_ids["broker"], signal.SIGKILL)
    deadline_s = time.monotonic() + 60
    while (now := lifecycle.read_state(home)) is None or now.process_ids == state.process_ids or not alive_workers(now):
        assert time.monotonic() < deadline_s, "the broker did not come back"
        time.sleep(0.1)


def _await_batches(driver: subprocess.Popen[bytes], root: Path, *, since_s: float) -> None:
    """Until the driver has finished a batch of its own."""
    deadline_s = time.monotonic() + LONGEST_LIFE_S
    while driver.poll() is None and time.monotonic() < deadline_s:
        commits = root.glob("checkpoints/*/commits/[0-9]*")
        if any(path.stat().st_mtime > since_s for path in commits):
            return
        time.sleep(0.1)


def main(root: Path, url: str, query: str, events: int, rescales: int, seed: int, share: float) -> None:
    broker = Broker.parse(url)
    (answer,) = [one for one in ANSWERS if one.query == query]
    done = check_query(
        answer,
        None,
        root,
        events=events,
        rescales=rescales,
        seed=seed,
        store=KafkaTopics(broker),
        output=lambda engine: read_frame(broker.bootstrap, broker.name_of("out"), engine.runtime.topics["out"].schema),
        pause_s=BLOCK_PAUSE_S,
        share=share,
        on_rescale=lambda target: print(RESCALED, target, flush=True),
    )
    print(f"{done.results} results, exact")


if __name__ == "__main__":
    events, rescales, seed = map(int, sys.argv[4:7])
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], events, rescales, seed, float(sys.argv[7]))
