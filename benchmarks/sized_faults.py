"""Nothing lost or twice while the mix of nodes changes: nodes killed, a start that fails, one that takes a minute.

    python -m benchmarks.sized_faults --changes 20 --out sized-faults

Two operators, one of them with state, on nodes of three sizes on this machine. Changes come in pieces of --piece, each
with its own run and count; the same folder again goes on with the next piece. A piece has two kinds of faults, the
next one the other two.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import end_on_sigterm
from benchmarks.sized_jobs import TYPES, master, open_engine, pipeline_of
from sluice import Topic
from sluice.control.engine import wait
from sluice.errors import SluiceError
from sluice.model import InstanceMix, NodeType, Target
from sluice.spark.nodes.engine import SizedEngine
from sluice.spark.nodes.local import LocalNodes
from sluice.spark.nodes.provider import WorkerNode

CORES = 1.9
RATE = 4_000.0
LATE_S = 60.0
PATIENCE_S = 150.0
KILLED, FAILS, DRAINING, LATE = FAULTS = (
    "a node is killed",
    "a start fails",
    "a draining node is killed",
    "a start takes a minute",
)


class FaultyNodes:
    """Nodes of this machine, whose next start fails or is late when told so."""

    def __init__(self, inner: LocalNodes) -> None:
        self.inner = inner
        self.fails = False
        self.is_late = False
        self.faults: list[str] = []

    def types(self) -> Sequence[NodeType]:
        return self.inner.types()

    def start(self, type_name: str, count: int) -> Sequence[WorkerNode]:
        if self.fails:
            self.fails = False
            self.faults.append(FAILS)
            raise SluiceError("this start was told to fail")
        if self.is_late:
            self.is_late = False
            self.faults.append(LATE)
            time.sleep(LATE_S)
        return self.inner.start(type_name, count)

    def stop(self, node: WorkerNode) -> None:
        self.inner.stop(node)

    def list(self) -> Sequence[WorkerNode]:
        return self.inner.list()

    def kill(self, nodes: Iterable[WorkerNode], fault: str) -> None:
        """The first of them, if there is one."""
        for node in list(nodes)[:1]:
            os.kill(self.inner.process_id(node), signal.SIGKILL)
            self.faults.append(fault)


def next_mix(chance: random.Random, before: dict[str, InstanceMix]) -> dict[str, InstanceMix]:
    """Another mix, so small that what it replaces has room beside it."""
    cores = {one.name: one.cpu_cores for one in TYPES}
    while True:
        mixes = {name: {chance.choice(TYPES).name: chance.randint(1, 2)} for name in before}
        together = [*mixes.values(), *before.values()]
        if mixes != before and sum(cores[size] * n for mix in together for size, n in mix.items()) <= CORES:
            return mixes


def change(engine: SizedEngine, mixes: dict[str, InstanceMix]) -> float | None:
    """Seconds until the mix was there; null if it was not in time."""
    target = Target(parallelism={name: sum(mix.values()) for name, mix in mixes.items()}, sizes=mixes)
    began_s = time.monotonic()
    while time.monotonic() - began_s < PATIENCE_S:
        done = engine.reconcile(target)
        if done.observed == done.requested:
            return round(time.monotonic() - began_s, 1)
        wait(engine, engine.tick_s)
    return None


def piece(folder: Path, number: int, changes: int) -> dict[str, Any]:
    chance = random.Random(number)
    kinds = (FAILS, LATE) if number % 2 else (KILLED, DRAINING)
    faults = dict(zip(chance.sample(range(changes), min(2, changes)), kinds, strict=False))
    root = folder / f"work-{number}"
    taken_s: list[float | None] = []
    with master(folder / f"cluster-{number}") as url:
        local = LocalNodes(url, TYPES, folder / f"nodes-{number}", cores=CORES)
        nodes = FaultyNodes(local)
        engine = open_engine(pipeline_of("digest", "per_key"), root, url, nodes, rate=RATE)
        try:
            started = engine.start(Target(parallelism={"digest": 1, "per_key": 1}))
            mixes = dict(started.sizes)
            wait(engine, 5.0)
            for position in range(changes):
                fault = faults.get(position)
                nodes.fails, nodes.is_late = fault == FAILS, fault == LATE
                mixes = next_mix(chance, mixes)
                if fault == KILLED:
                    nodes.kill(engine.nodes_of("per_key"), KILLED)
                taken_s.append(change(engine, mixes))
                if fault == DRAINING:
                    nodes.kill(engine.pool.draining.values(), DRAINING)
                engine.observe()
                print(
                    f"  change {position}: {mixes}, there after {taken_s[-1]} s{f', {fault}' if fault else ''}",
                    flush=True,
                )
                wait(engine, 3.0)
        finally:
            counted = engine.stop()
            local.close()
    return {
        "changes": changes,
        "faults": nodes.faults,
        "there_after_s": taken_s,
        "records": counted.processed,
        "lost": counted.lost,
        "twice": counted.duplicated,
        **counts(root),
    }


def counts(root: Path) -> dict[str, int]:
    """What the counting operator says of all keys together, and what it had read."""
    out = Topic.open(root / "topics" / "out")
    found: dict[int, int] = {}
    for batch in out.read(0, out.end_offset()):
        found |= dict(zip(batch["key"].to_pylist(), batch["count"].to_pylist(), strict=True))
    return {
        "counted": sum(found.values()),
        "through": Topic.open(root / "topics" / "digest").consumers()["per_key"],
        "digests": Topic.open(root / "topics" / "digest").end_offset(),
        "numbers": Topic.open(root / "topics" / "numbers").consumers()["digest"],
    }


def main() -> None:
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--piece", type=int, default=5)
    parser.add_argument("--pieces", type=int, help="so many now; default: all that are left")
    parser.add_argument("--out", type=Path, default=Path("sized-faults"))
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    todo = [number for number in range(-(-given.changes // given.piece)) if not (out / f"piece-{number}.json").exists()]
    for number in todo[: given.pieces]:
        size = min(given.piece, given.changes - number * given.piece)
        (out / f"piece-{number}.json").write_text(json.dumps(piece(out, number, size)))
    results = [json.loads(path.read_text()) for path in sorted(out.glob("piece-*.json"))]
    for result in results:
        print(json.dumps(result))
    total = {key: sum(one[key] for one in results) for key in ("changes", "records", "lost", "twice")}
    exact = all(one["counted"] == one["through"] and one["digests"] == one["numbers"] for one in results)
    print(f"{total}; output exact: {exact}")


if __name__ == "__main__":
    main()
