"""Workers on this machine and one Spark application on them, for all benchmarks of placement.

Starting a JVM on half a core takes a minute: workers with a CPU limit get all there is until `limit` is called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.measuring import end_on_sigterm
from sluice.spark.cluster import lifecycle, standalone
from sluice.spark.cluster.limits import PERIOD_US
from sluice.spark.cluster.plan import ClusterState
from sluice.spark.placed.cluster import PLACED_SETTINGS, SETTINGS
from sluice.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Workers:
    """A running cluster, and a session on it."""

    state: ClusterState
    spark: SparkSession
    folder: Path

    @property
    def names(self) -> list[str]:
        return sorted(self.state.worker_hosts.values())

    def free(self) -> None:
        """Let queries start with all there is."""
        set_quotas(self.state, -1)

    def limit(self) -> None:
        """From now on every worker has just the CPU it is meant to have."""
        assert self.state.cpus is not None
        set_quotas(self.state, round(self.state.cpus * PERIOD_US))


def set_quotas(state: ClusterState, quota_us: int) -> None:
    for group in state.cpu_groups:
        of_first_version = Path(group) / "cpu.cfs_quota_us"
        if of_first_version.exists():
            of_first_version.write_text(str(quota_us))
        else:
            (Path(group) / "cpu.max").write_text(f"{quota_us if quota_us > 0 else 'max'} {PERIOD_US}")


@contextlib.contextmanager
def workers(
    name: str, *, count: int, slots: int, cpus: float | None = None, places: bool = True, memory_mb: int = 1024
) -> Iterator[Workers]:
    """`count` workers of so many slots; their folder goes with them, also when a benchmark is ended from outside."""
    end_on_sigterm()
    with TemporaryDirectory(prefix="sluice-placed-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "cluster"
        try:
            state = standalone.up(home, workers=count, slots=slots, cpus=cpus)
            set_quotas(state, -1)
            settings = {**SETTINGS, **(PLACED_SETTINGS if places else {}), "spark.executor.memory": f"{memory_mb}m"}
            with open_session(name, threads=1, master=state.master_url, settings=settings) as spark:
                yield Workers(state, spark, Path(folder))
        finally:
            lifecycle.down(home)
