"""What an operator does on a node of each size, measured, against models of what DSA and fixed steps would sample.

    python -m benchmarks.sized_capacity --operators digest --within 400 --out sized-capacity

Every size is measured once on the live load of a running job; every sample is kept as it is taken, and the same folder
again goes on. An operator takes about seven minutes. Samplers then choose among what was measured, so comparing them
costs no Spark: with --passes 2 they see the second pass, and are held against the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.measuring import end_on_sigterm
from benchmarks.sized_jobs import MEMORY_MB, master, open_engine, pipeline_of
from sluice.errors import SluiceError
from sluice.lab.spark_sampling import AS_IT_IS, sample_operators
from sluice.learning.performance import errors, tuned
from sluice.learning.sampled_sizes import read_samples
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling, Sample, SamplingTarget
from sluice.model import InstanceSize, NodeType, Target
from sluice.spark.nodes.local import LocalNodes
from sluice.spark.nodes.sampling import LiveSampling

CORES = (0.2, 0.3, 0.4, 0.6, 0.8)
TYPES = tuple(
    NodeType(name=f"c{cores:g}", cpu_cores=cores, memory_mb=MEMORY_MB, slots=2 if cores > 0.5 else 1, start_s=30)
    for cores in CORES
)
SAMPLERS: dict[str, DynamicSampling | FixedStepSampling] = {
    "every size": FixedStepSampling(step=1),
    "fixed steps of 2": FixedStepSampling(step=2),
    "DSA": DynamicSampling(),
}
CONVERGENCE = ConvergenceRule(windows=3, tolerance=0.07, max_windows=12)
WINDOW_S = 4.0
RATES = {"digest": 160_000.0, "per_key": 600_000.0, "parse": 200_000.0}
"""Records/s that arrive: more than the node that is sampled and the one beside it can take."""
DEFAULT = "c0.3"


class OutOfTimeError(SluiceError):
    pass


class Bounded:
    """Begins no more samples after a while; those that are taken stay."""

    def __init__(self, target: SamplingTarget, until_s: float) -> None:
        self._target = target
        self._until_s = until_s

    def rates(self, size: InstanceSize) -> Iterator[float]:
        if time.monotonic() > self._until_s:
            raise OutOfTimeError(f"out of time before {size.name}; the same command goes on")
        yield from self._target.rates(size)


class Measured:
    """Sizes whose rates are known already."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._rates: Mapping[str, float] = {one.size.name: one.rate for one in samples}

    def rates(self, size: InstanceSize) -> Iterator[float]:
        yield self._rates[size.name]


def samples_in(path: Path, operator: str) -> tuple[Sample, ...]:
    taken = read_samples(str(path)).get(operator, ()) if path.exists() else ()
    return tuple(sorted(taken, key=lambda one: one.size.cpu_cores))


def measure(operator: str, path: Path, folder: Path, until_s: float) -> None:
    """What is left to be measured, in a job of its own."""
    if len(samples_in(path, operator)) == len(TYPES):
        return
    with master(folder / "cluster") as url:
        local = LocalNodes(url, TYPES, folder / "nodes")
        engine = open_engine(
            pipeline_of(operator), folder / "work", url, local, rate=RATES[operator], default_type=DEFAULT
        )
        try:
            target = engine.start(Target(parallelism={operator: 1}))
            live = LiveSampling(engine, operator, target, window_s=WINDOW_S, trigger_s=1.0, say=print)
            sizes = [one.size for one in TYPES]
            sample_operators(
                {operator: Bounded(live, until_s)}, sizes, FixedStepSampling(step=1), CONVERGENCE, path, print
            )
        except OutOfTimeError as error:
            print(error)
        finally:
            counted = engine.stop()
            local.close()
    print(f"{operator}: {counted.processed} records, lost {counted.lost}, twice {counted.duplicated}", flush=True)


def compare(operator: str, seen: Sequence[Sample], truth: Sequence[Sample]) -> None:
    for name, sampler in SAMPLERS.items():
        taken = sampler.sample(Measured(seen), [one.size for one in seen], AS_IT_IS)
        off = errors(tuned(taken).model.known_rates([one.size for one in truth]), [one.rate for one in truth])
        rates = ", ".join(f"{one.size.name} {one.rate:,.0f}" for one in taken)
        print(f"{operator}, {name}: {len(taken)} samples ({rates}), RMSE {off.rmse:.3f}, MAE {off.mae:.3f}")


def main() -> None:
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", default=",".join(RATES))
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds; no sample begins after that")
    parser.add_argument("--out", type=Path, default=Path("sized-capacity"))
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    until_s = time.monotonic() + given.within
    for operator in given.operators.split(","):
        paths = [out / f"{operator}-{number}.json" for number in range(given.passes)]
        for path in paths:
            if time.monotonic() < until_s:
                measure(operator, path, out / f"{path.stem}-{int(time.time())}", until_s)
        passes = [samples_in(path, operator) for path in paths]
        if all(len(taken) == len(TYPES) for taken in passes):
            compare(operator, passes[-1], passes[0])


if __name__ == "__main__":
    main()
