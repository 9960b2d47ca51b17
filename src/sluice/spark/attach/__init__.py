"""Auto-scaling for the job you already have: `sluice.attach(spark, policy="ds2", max_executors=8)`.

A listener and a small thread in the driver of your own program. Executors join and leave while the queries run; nothing
is restarted. Whatever goes wrong here ends the scaling, never the job.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from sluice import __version__
from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop, Watcher
from sluice.control.memory import MemoryStore
from sluice.errors import BadInputError
from sluice.journal.file import FileJournal, Journal, MemoryJournal
from sluice.journal.records import Choice, RunHeader
from sluice.journal.results import CycleReport
from sluice.model import Target
from sluice.protocol import Policy, policies, recommends_sizes
from sluice.spark.attach.application import NO_QUERY
from sluice.spark.attach.conditions import check_session
from sluice.spark.attach.configuration import reads_configuration
from sluice.spark.attach.engine import AttachedEngine
from sluice.spark.attach.executors import ClusterExecutors
from sluice.spark.attach.log import line, log_report
from sluice.spark.attach.objective import Objective
from sluice.spark.attach.prometheus import MetricsServer
from sluice.spark.attach.wrappers import IdleRelease, LatencyObjective

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("sluice")
POLICY_TIMEOUT_S = 10.0
FOREVER_S = float("inf")
CYCLES_IN_MEMORY = 2000
"""Kept of an attachment without a journal: some five hours of the default interval."""
_attached: dict[str, Attachment] = {}
"""Application id -> who scales it: there can be one."""


@dataclass(frozen=True, kw_only=True)
class AttachSettings:
    """What `attach` was asked for, checked."""

    min_executors: int = 1
    max_executors: int = 4
    initial_executors: int | None = None
    interval_s: float = 10.0
    cooldown_s: float = 30.0
    idle_s: float = 60.0
    fulfil_within_s: float = 120.0

    def __post_init__(self) -> None:
        if self.min_executors < 1:
            raise BadInputError(
                f"min_executors must be at least 1 (without executors there are no batches and so no metrics), "
                f"got {self.min_executors}"
            )
        if self.max_executors < self.min_executors:
            raise BadInputError(
                f"max_executors must be at least min_executors ({self.min_executors}), got {self.max_executors}"
            )
        first = self.initial_executors
        if first is not None and not self.min_executors <= first <= self.max_executors:
            raise BadInputError(
                f"initial_executors must be from min_executors ({self.min_executors}) to max_executors "
                f"({self.max_executors}), got {first}"
            )
        for name in ("interval_s", "idle_s", "fulfil_within_s"):
            if not getattr(self, name) > 0:
                raise BadInputError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.cooldown_s < 0:
            raise BadInputError(f"cooldown_s must not be negative, got {self.cooldown_s}")

    def first_executors(self, present: int, *, working: bool) -> int:
        """How many to begin with: as asked, else those a running job has, else the fewest."""
        if self.initial_executors is not None:
            return self.initial_executors
        return min(max(present, self.min_executors), self.max_executors) if working else self.min_executors


class Attachment:
    """A running attachment: detach it, or use it as a context manager. The job goes on either way."""

    def __init__(
        self,
        loop: Loop,
        settings: AttachSettings,
        executors: int,
        ended: threading.Event,
        metrics: MetricsServer | None = None,
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._executors = executors
        self._ended = ended
        self._watchers: list[Watcher] = [log_report]
        self._metrics = metrics
        if metrics is not None:
            self._watchers.append(metrics)
        self.failure: BaseException | None = None
        self.gives_way = False
        """Whether the next attachment may take its place: that of `sluice submit` to one in the program itself."""
        self._thread = threading.Thread(target=self._watch, name="sluice-attach", daemon=True)

    @property
    def journal(self) -> Journal:
        return self._loop.journal

    @property
    def is_watching(self) -> bool:
        return self._thread.is_alive()

    def on_report(self, watcher: Watcher) -> None:
        """Call this after every cycle, and again when more is known of its outcome, in the attachment's thread."""
        self._watchers.append(watcher)

    def detach(self) -> None:
        """Stop watching and scaling; executors stay as they are."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def _start(self) -> None:
        self._thread.start()

    def _watch(self) -> None:
        try:
            self._loop.run(
                Target(parallelism={NO_QUERY: max(1, self._executors)}),
                duration_s=FOREVER_S,
                interval_s=self._settings.interval_s,
                on_report=self._report,
                should_stop=self._ended.is_set,
            )
        except BaseException as failure:  # the user's job must not notice
            self.failure = failure
            if not self._ended.is_set():
                log.error(
                    "%s",
                    line(
                        {
                            "event": "ended",
                            "error": f"{type(failure).__name__}: {failure}",
                            "detail": "the job goes on with the executors it has",
                        }
                    ),
                )
        finally:
            if self._metrics is not None:
                self._metrics.close()

    def _report(self, report: CycleReport) -> None:
        for watcher in list(self._watchers):
            try:
                watcher(report)
            except Exception as error:
                self._watchers.remove(watcher)
                why = f"{type(error).__name__}: {error}"
                log.warning("%s", line({"event": "watcher_failed", "error": why, "detail": "not called again"}))


@reads_configuration
def attach(
    spark: SparkSession,
    policy: str | Policy = "ds2",
    *,
    min_executors: int = 1,
    max_executors: int = 4,
    initial_executors: int | None = None,
    interval: float = 10.0,
    cooldown: float = 30.0,
    idle: float = 60.0,
    dry_run: bool = False,
    objective: str | None = None,
    fulfil_within: float = 120.0,
    policy_settings: Mapping[str, Any] | None = None,
    journal: str | Path | None = None,
    memory: str | Path | None = None,
    metrics_port: int | None = None,
) -> Attachment:
    """Scale the executors of this session's application, from now until `detach()` or the end of the program.

    Times are in seconds. Without `initial_executors` a running job begins with those it has, one without a query with
    `min_executors`. `dry_run` decides and records without requesting or releasing anything. `objective` raises the
    policy's recommendation while records are late. Executors that do not come within `fulfil_within` are reported and
    requested again later. Without `journal` the last cycles are kept in memory. `metrics_port` serves Prometheus
    metrics.
    """
    settings = AttachSettings(
        min_executors=min_executors,
        max_executors=max_executors,
        initial_executors=initial_executors,
        interval_s=interval,
        cooldown_s=cooldown,
        idle_s=idle,
        fulfil_within_s=fulfil_within,
    )
    chosen: Policy = policies.create(policy, policy_settings) if isinstance(policy, str) else policy
    if recommends_sizes(chosen):
        raise BadInputError("attach cannot apply instance sizes: executors of an application are all of one size")
    name = policy if isinstance(policy, str) else policies.name_of(chosen)
    if objective is not None:
        chosen = LatencyObjective(inner=chosen, latency_s=Objective.parse(objective).latency_s)
    for advice in check_session(spark, max_executors):
        log.warning("%s", line({"event": "advice", "detail": advice}))
    application = str(spark.sparkContext.applicationId)
    if (other := _attached.get(application)) is not None and other.gives_way:
        other.detach()
    if other is not None and other.is_watching:
        raise BadInputError(f"application {application!r} is attached already; detach() the first before the next")
    executors = ClusterExecutors(spark)
    present = len(executors.present())
    begin = settings.first_executors(present, working=bool(spark.streams.active))
    ended = threading.Event()
    with ExitStack() as opened:
        records: Journal = FileJournal(Path(journal)) if journal else MemoryJournal(CYCLES_IN_MEMORY)
        opened.callback(records.close)
        metrics = MetricsServer(metrics_port) if metrics_port is not None else None
        if metrics is not None:
            opened.callback(metrics.close)
        store = MemoryStore(Path(memory), name) if memory else None
        if store is not None:
            store.load()
        loop = Loop(
            engine=AttachedEngine(spark, executors, min_executors, ended),
            decider=Decider(IdleRelease(inner=chosen, idle_s=idle, minimum=min_executors), POLICY_TIMEOUT_S),
            journal=records,
            guards=Guards(min_parallelism=min_executors, max_parallelism=max_executors, cooldown_s=cooldown),
            store=store,
            dry_run=dry_run,
            fulfil_within_s=fulfil_within,
        )
        records.append(
            RunHeader(
                version=__version__,
                engine="attach",
                pipeline=Choice(name=spark.sparkContext.appName),
                policy=Choice(name=name, settings=dict(policy_settings or {})),
                guards=dict(vars(loop.guards)),
                interval_s=interval,
                slo_s=Objective.parse(objective).latency_s if objective else None,
                dry_run=dry_run,
                settings={"application_id": application, "objective": objective, **asdict(settings)},
            )
        )
        attachment = Attachment(loop, settings, begin, ended, metrics)
        facts = {"event": "attached", "application": application, "policy": name, "executors": present}
        bounds = {"begin_with": begin, "min": min_executors, "max": max_executors, "dry_run": dry_run}
        log.info("%s", line({**facts, **bounds}))
        _attached[application] = attachment
        attachment._start()
        opened.pop_all()
    return attachment


__all__ = ["AttachSettings", "Attachment", "attach"]
