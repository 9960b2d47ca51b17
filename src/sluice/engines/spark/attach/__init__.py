"""Auto-scaling for the job you already have: `sluice.attach(spark, policy="ds2", max_executors=8)`.

A listener and a small thread in the driver of your own program. Executors join and leave while the queries run; nothing
is restarted. Whatever goes wrong here ends the scaling, never the job.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.journal import Entry, FileJournal, Journal, MemoryJournal
from sluice.control.loop import Loop
from sluice.control.memory import MemoryStore
from sluice.engines.spark.attach.application import NO_QUERY
from sluice.engines.spark.attach.engine import AttachedEngine
from sluice.engines.spark.attach.executors import ClusterExecutors, refuse_what_cannot_scale
from sluice.engines.spark.attach.objective import Objective
from sluice.engines.spark.attach.wishes import WhileIdle, WithObjective
from sluice.errors import BadInputError
from sluice.model import Plan
from sluice.policies import Policy, policies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("sluice")
POLICY_TIMEOUT_S = 10.0
FOREVER_S = float("inf")


@dataclass(frozen=True, kw_only=True)
class AttachSettings:
    """What `attach` was asked for, checked."""

    min_executors: int = 1
    max_executors: int = 4
    interval_s: float = 10.0
    cooldown_s: float = 30.0
    idle_s: float = 60.0

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
        for name in ("interval_s", "idle_s"):
            if not getattr(self, name) > 0:
                raise BadInputError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.cooldown_s < 0:
            raise BadInputError(f"cooldown_s must not be negative, got {self.cooldown_s}")


class Attachment:
    """A running attachment: detach it, or use it as a context manager. The job goes on either way."""

    def __init__(self, loop: Loop, settings: AttachSettings, executors: int, ended: threading.Event) -> None:
        self._loop = loop
        self._settings = settings
        self._executors = executors
        self._ended = ended
        self._watchers: list[Callable[[Entry], None]] = [_log_cycle]
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, name="sluice-attach", daemon=True)

    @property
    def journal(self) -> Journal:
        return self._loop.journal

    def on_cycle(self, watcher: Callable[[Entry], None]) -> None:
        """Call this with every cycle's journal entry, in the attachment's thread."""
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
                Plan(parallelism={NO_QUERY: max(1, self._executors)}),
                duration_s=FOREVER_S,
                interval_s=self._settings.interval_s,
                on_cycle=self._tell,
                should_stop=self._ended.is_set,
            )
        except BaseException as failure:  # the user's job must not notice
            self.failure = failure
            if not self._ended.is_set():
                log.error(
                    "scaling ended: %s: %s; the job goes on with the executors it has", type(failure).__name__, failure
                )

    def _tell(self, entry: Entry) -> None:
        for watcher in self._watchers:
            watcher(entry)


def attach(
    spark: SparkSession,
    policy: str | Policy = "ds2",
    *,
    min_executors: int = 1,
    max_executors: int = 4,
    interval: float = 10.0,
    cooldown: float = 30.0,
    idle: float = 60.0,
    dry_run: bool = False,
    objective: str | None = None,
    policy_settings: Mapping[str, Any] | None = None,
    journal: str | Path | None = None,
    memory: str | Path | None = None,
    metrics_port: int | None = None,
) -> Attachment:
    """Scale the executors of this session's application, from now until `detach()` or the end of the program.

    Times are in seconds. `dry_run` decides and records without asking for or releasing anything. `objective` raises the
    policy's wish while records are late. `metrics_port` serves Prometheus metrics.
    """
    settings = AttachSettings(
        min_executors=min_executors,
        max_executors=max_executors,
        interval_s=interval,
        cooldown_s=cooldown,
        idle_s=idle,
    )
    chosen: Policy = policies.create(policy, policy_settings) if isinstance(policy, str) else policy
    if objective is not None:
        chosen = WithObjective(inner=chosen, latency_s=Objective.parse(objective).latency_s)
    refuse_what_cannot_scale(spark)
    executors = ClusterExecutors(spark)
    ended = threading.Event()
    engine = AttachedEngine(spark, executors, min_executors, ended)
    store = MemoryStore(Path(memory), policy if isinstance(policy, str) else type(policy).__name__) if memory else None
    loop = Loop(
        engine=engine,
        decider=Decider(WhileIdle(inner=chosen, idle_s=idle, minimum=min_executors), POLICY_TIMEOUT_S),
        journal=FileJournal(Path(journal)) if journal else MemoryJournal(),
        guards=Guards(min_parallelism=min_executors, max_parallelism=max_executors, cooldown_s=cooldown),
        store=store,
        dry_run=dry_run,
    )
    present = len(executors.present())
    if not dry_run and not min_executors <= present <= max_executors:
        executors.scale_to(min(max(present, min_executors), max_executors))
    attachment = Attachment(loop, settings, present, ended)
    if metrics_port is not None:
        from sluice.engines.spark.attach.prometheus import serve

        attachment.on_cycle(serve(metrics_port))
    attachment._start()
    return attachment


def _log_cycle(entry: Entry) -> None:
    """One structured line per cycle: scaling actions at INFO, the rest at DEBUG."""
    applied = entry["applied"]
    acted = bool(applied and (applied["changed"] or applied["error"]))
    log.log(
        logging.INFO if acted else logging.DEBUG,
        "time_s=%.1f wanted=%s reason=%r detail=%r error=%r",
        entry["time_s"],
        entry["plan"]["parallelism"],
        entry["decision"]["reason"],
        applied["detail"] if applied else None,
        applied["error"] if applied else None,
    )


__all__ = ["AttachSettings", "Attachment", "attach"]
