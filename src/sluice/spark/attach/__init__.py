"""Auto-scaling for the job you already have: `sluice.attach(spark, max_executors=8)`.

A listener and a small thread in the driver of your own program. Executors join and leave while the queries run; nothing
is restarted. Whatever goes wrong here ends the scaling, never the job.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from sluice import __version__
from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.control.memory import MemoryStore
from sluice.control.shadows import shadow_policies
from sluice.control.switches import Switchboard
from sluice.durations import Duration, seconds
from sluice.errors import BadInputError
from sluice.journal.file import FileJournal, Journal, MemoryJournal, Rotation
from sluice.journal.records import Choice, RunHeader
from sluice.protocol import DEFAULT_POLICY, Policy
from sluice.spark.attach.attachment import Attachment
from sluice.spark.attach.conditions import check_rights, check_settings, read_session
from sluice.spark.attach.configuration import reads_configuration
from sluice.spark.attach.defaults import choose_defaults
from sluice.spark.attach.engine import AttachedEngine
from sluice.spark.attach.executors import ClusterExecutors
from sluice.spark.attach.log import line
from sluice.spark.attach.objective import Objective
from sluice.spark.attach.page import host_of, page_of
from sluice.spark.attach.settings import (
    AttachSettings,
    different_files,
    path_of,
    policy_of,
    port_of,
    whole_number,
)
from sluice.spark.attach.suitability import ONE_QUERY, OneQuery, check_suitable
from sluice.spark.attach.wrappers import IdleRelease, LatencyObjective, SharedExecutors
from sluice.spark.internals.queries import ApplicationQueries
from sluice.web.metrics import MetricsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("sluice")
POLICY_TIMEOUT_S = 10.0
CYCLES_IN_MEMORY = 2000
"""Kept of an attachment without a journal: some five hours of the default interval."""
_attached: dict[str, Attachment] = {}
"""Application id -> who scales it: there can be one."""
P = ParamSpec("P")
R = TypeVar("R")
_one_at_a_time = threading.Lock()


def one_at_a_time(attach: Callable[P, R]) -> Callable[P, R]:
    """Of two threads that attach to one application, the second is to find the first."""

    @functools.wraps(attach)
    def attach_alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with _one_at_a_time:
            return attach(*args, **kwargs)

    return attach_alone


@reads_configuration
@one_at_a_time
def attach(
    spark: SparkSession,
    policy: str | Policy = DEFAULT_POLICY,
    *,
    min_executors: int = 1,
    max_executors: int | None = None,
    initial_executors: int | None = None,
    interval: Duration | None = None,
    cooldown: Duration = 30.0,
    idle: Duration = 60.0,
    dry_run: bool = False,
    objective: str | None = None,
    fulfil_within: Duration = 120.0,
    policy_settings: Mapping[str, Any] | None = None,
    journal: str | Path | None = None,
    memory: str | Path | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    dashboard: bool = False,
    dashboard_port: int | None = None,
    dashboard_host: str = "127.0.0.1",
    dashboard_token: str | None = None,
    shadow: Sequence[str] = (),
) -> Attachment:
    """Scale the executors of this session's application, from now until `detach()` or the end of the program.

    Times are seconds or texts such as `30s` and `5m`. What is None is chosen, and the log says how: `max_executors` by
    what the cluster may give, `interval` by the triggers of running queries. Without `initial_executors` a running job
    begins with those it has, one without a query with `min_executors`. `dry_run` decides and records without requesting
    or releasing anything. `objective` raises the policy's recommendation while records are late. Executors that do not
    come within `fulfil_within` are reported and requested again later. `journal` is a file, rotated as it grows;
    without it the last cycles are kept in memory. `metrics_port` serves Prometheus metrics, `dashboard` a page; its
    controls are for who has the `dashboard_token`. Both listen on the loopback address unless told otherwise. `shadow`
    names policies that are asked in every cycle, too, and put on record.
    """
    counts = {"min_executors": min_executors, "max_executors": max_executors, "initial_executors": initial_executors}
    times = {"interval": interval, "cooldown": cooldown, "idle": idle, "fulfil_within": fulfil_within}
    asked: dict[str, Any] = {
        **{name: whole_number(count, name) for name, count in counts.items() if name in _NEEDED or count is not None},
        **{f"{name}_s": seconds(time, name) for name, time in times.items() if name in _NEEDED or time is not None},
    }
    if not isinstance(dry_run, bool):
        raise BadInputError(f"dry_run must be True or False, got {dry_run!r}")
    slo_s = Objective.parse(objective).latency_s if objective is not None else None
    name, chosen = policy_of(policy, policy_settings, slo_s)
    shadows = shadow_policies([shadow] if isinstance(shadow, str) else shadow, slo_s)
    journal_path, memory_path = path_of(journal, "journal"), path_of(memory, "memory")
    different_files({"journal": journal_path, "memory": memory_path})
    port = port_of(metrics_port, "metrics_port")
    page = page_of(dashboard, dashboard_host, dashboard_port, dashboard_token)
    metrics_address = host_of(metrics_host, "metrics_host")

    master, configured = read_session(spark)
    application = str(spark.sparkContext.applicationId)
    if (other := _attached.get(application)) is not None and other.gives_way:
        other.detach()
    if other is not None and other.is_watching:
        raise BadInputError(f"application {application!r} is attached already; detach() the first before the next")
    check_rights(spark, master)
    drains = configured.get("spark.decommission.enabled") == "true"
    executors, queries = ClusterExecutors(spark, drains=drains), ApplicationQueries(spark)
    present, running = len(executors.present()), queries.running()
    check_suitable(name, len(running))
    triggers_s = [query.trigger_interval_s() for query in running]
    choices = choose_defaults(asked, master, configured, present, triggers_s)
    settings = AttachSettings(**{choice.what: choice.value for choice in choices if choice.is_setting}, **asked)
    advice = check_settings(master, configured, settings.max_executors)
    for choice in choices:
        log.info("%s", line({"event": "chose", "what": choice.what, "value": choice.value, "why": choice.why}))
    for sentence in advice:
        log.warning("%s", line({"event": "advice", "detail": sentence}))

    ended = threading.Event()
    with ExitStack() as opened:
        records: Journal = MemoryJournal(CYCLES_IN_MEMORY)
        if journal_path:
            records = FileJournal(journal_path, rotation=Rotation())
        opened.callback(records.close)
        title = str(spark.sparkContext.appName)
        metrics = MetricsServer(port, metrics_address, title) if port is not None else None
        if metrics is not None:
            opened.callback(metrics.close)
        store = MemoryStore(memory_path, name) if memory_path else None
        if store is not None:
            store.load()
            store.check_writable()
        bounds = settings.min_executors, settings.max_executors
        switches = Switchboard(lambda other, given: _decider(other, given, slo_s, settings))
        if page is not None:
            opened.callback(page.open(records, title, switches).close)
        loop = Loop(
            engine=AttachedEngine(spark, executors, queries, bounds, ended),
            decider=Decider(_wrapped(chosen, name, slo_s, settings), POLICY_TIMEOUT_S),
            switches=switches,
            journal=records,
            guards=Guards(min_parallelism=bounds[0], max_parallelism=bounds[1], cooldown_s=settings.cooldown_s),
            store=store,
            shadows={
                label: Decider(_wrapped(one, label.partition(":")[0], slo_s, settings), POLICY_TIMEOUT_S)
                for label, one in shadows.items()
            },
            dry_run=dry_run,
            fulfil_within_s=settings.fulfil_within_s,
        )
        records.append(
            RunHeader(
                version=__version__,
                engine="attach",
                pipeline=Choice(name=spark.sparkContext.appName),
                policy=Choice(name=name, settings=dict(policy_settings or {})),
                guards=dict(vars(loop.guards)),
                interval_s=settings.interval_s,
                slo_s=slo_s,
                dry_run=dry_run,
                settings={"application_id": application, "objective": objective, **asdict(settings)},
            )
        )
        begin = settings.first_executors(present, working=bool(running) or executors.has_jobs())
        attachment = Attachment(loop, settings, begin, ended, metrics, on_end=lambda: _attached.pop(application, None))
        attachment.page = page
        facts = {"event": "attached", "application": application, "policy": name, "executors": present}
        log.info("%s", line({**facts, "begin_with": begin, "min": bounds[0], "max": bounds[1], "dry_run": dry_run}))
        _attached[application] = attachment
        attachment._start()
        opened.pop_all()
    return attachment


def _decider(name: str, settings: Mapping[str, Any], slo_s: float | None, asked: AttachSettings) -> Decider:
    """Who is asked when somebody changes the policy of a running attachment."""
    found, chosen = policy_of(name, settings)
    check_suitable(found, queries=0)
    return Decider(_wrapped(chosen, found, slo_s, asked), POLICY_TIMEOUT_S)


_NEEDED = ("min_executors", "cooldown", "idle", "fulfil_within")
"""What cannot be None."""


def _wrapped(policy: Policy, name: str, slo_s: float | None, settings: AttachSettings) -> Policy:
    """The policy as it is asked: with the objective, on shared executors, and not at all when the job is idle."""
    aiming = policy if slo_s is None else LatencyObjective(inner=policy, latency_s=slo_s)
    shared = OneQuery(inner=aiming, name=name) if name in ONE_QUERY else SharedExecutors(inner=aiming)
    return IdleRelease(inner=shared, idle_s=settings.idle_s, minimum=settings.min_executors)


__all__ = ["AttachSettings", "Attachment", "attach"]
