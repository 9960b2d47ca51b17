"""What an operator does on a node of each size, measured, against a model of DSA's samples and of fixed steps.

    python -m benchmarks.sized_capacity --operators digest,per_key,parse --out sized-capacity

All sizes are measured first (fixed sampling with step 1: what the models are held against), then DSA takes its own
samples. Every sample is kept as it is taken: the same folder again goes on. Records are those of a running job.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.sized_jobs import MEMORY_MB, master, open_engine, pipeline_of
from sluice.lab.spark_sampling import sample_operators
from sluice.learning.performance import errors, tuned
from sluice.learning.sampled_sizes import read_samples
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling
from sluice.model import NodeType, Target
from sluice.spark.nodes.local import LocalNodes
from sluice.spark.nodes.sampling import LiveSampling

CORES = (0.2, 0.3, 0.4, 0.6, 0.8)
TYPES = tuple(
    NodeType(name=f"c{cores:g}", cpu_cores=cores, memory_mb=MEMORY_MB, slots=2 if cores > 0.5 else 1, start_s=30)
    for cores in CORES
)
SAMPLERS: dict[str, DynamicSampling | FixedStepSampling] = {
    "fssa": FixedStepSampling(step=1),
    "fssa2": FixedStepSampling(step=2),
    "dsa": DynamicSampling(),
}
CONVERGENCE = ConvergenceRule(windows=3, tolerance=0.07, max_windows=15)
RATES = {"digest": 25_000.0, "per_key": 60_000.0, "parse": 12_000.0}
DEFAULT = "c0.3"


def measure(operator: str, sampler: str, out: Path, sizes: tuple[NodeType, ...]) -> None:
    path = out / f"{operator}-{sampler}.json"
    folder = out / f"{operator}-{sampler}"
    if (folder / "done").exists():
        return
    with master(folder / "cluster") as url:
        local = LocalNodes(url, TYPES, folder / "nodes")
        engine = open_engine(
            pipeline_of(operator), folder / "work", url, local, rate=RATES[operator], default_type=DEFAULT
        )
        try:
            target = engine.start(Target(parallelism={operator: 1}))
            sampling = LiveSampling(engine, operator, target, window_s=4.0, trigger_s=1.0)
            offered = [one.size for one in sizes]
            sample_operators({operator: sampling}, offered, SAMPLERS[sampler], CONVERGENCE, path, print)
        finally:
            counted = engine.stop()
            local.close()
    print(f"{operator}, {sampler}: {counted.processed} records, lost {counted.lost}, twice {counted.duplicated}")
    (folder / "done").touch()


def compare(operator: str, out: Path) -> None:
    whole = out / f"{operator}-fssa.json"
    if not whole.exists():
        return
    truth = read_samples(str(whole))[operator]
    for sampler in SAMPLERS:
        path = out / f"{operator}-{sampler}.json"
        if not path.exists():
            continue
        taken = read_samples(str(path))[operator]
        model = tuned(taken).model
        off = errors(model.known_rates([one.size for one in truth]), [one.rate for one in truth])
        rates = ", ".join(f"{one.size.name} {one.rate:,.0f}" for one in taken)
        print(f"{operator}, {sampler}: {len(taken)} samples ({rates}), RMSE {off.rmse:.3f}, MAE {off.mae:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", default="digest,per_key,parse")
    parser.add_argument("--samplers", default="fssa,dsa,fssa2")
    parser.add_argument("--sizes", default=",".join(one.name for one in TYPES))
    parser.add_argument("--out", type=Path, default=Path("sized-capacity"))
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    sizes = tuple(one for one in TYPES if one.name in given.sizes.split(","))
    for operator in given.operators.split(","):
        for sampler in given.samplers.split(","):
            measure(operator, sampler, out, sizes)
        compare(operator, out)


if __name__ == "__main__":
    main()
