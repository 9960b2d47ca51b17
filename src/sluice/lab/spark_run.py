"""Runs on Spark: a built-in pipeline or one from a file, its topics filled at the rates of a workload."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from sluice.control.guards import Guards
from sluice.errors import BadInputError
from sluice.files import check_writable
from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.lab.run import RunSpec
from sluice.lab.spark_placing import SparkPlacement
from sluice.lab.workloads import rate_curve
from sluice.model import Target
from sluice.registry import parameter
from sluice.spark.masters import YARN
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.job import SparkJob, load_pipeline
from sluice.spark.placed.cluster import FIRST_EXECUTOR_S

if TYPE_CHECKING:
    from sluice.lab.generator.process import GeneratorProcess
    from sluice.lab.generator.producer import GeneratorReport
    from sluice.lab.spark_nodes import NodeSetup
    from sluice.spark.nodes.engine import SizedEngine
    from sluice.spark.pipeline.engine import SparkEngine
    from sluice.spark.pipeline.folders import SavedState
    from sluice.spark.real_time.engine import RealTimeEngine
    from sluice.spark.topic.interface import TopicStore

DEFAULT_DURATION_S = 300.0
DEFAULT_SLOTS = 24
YARN_EXECUTORS, YARN_SLOTS = 2, 4
REPORT = "generator.json"


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """How a pipeline is run on Spark."""

    slots: int | None = parameter(
        None, "slots there are; no plan may need more; default: 24, on a cluster the cores of its executors"
    )
    trigger_s: float = parameter(1.0, "time between the starts of micro-batches; full ones take about twice as long")
    topic_bound_records: int | None = parameter(None, "lag at which those who write a topic are held back")
    rescale: Literal["live", "repartition"] = parameter("live", "live, or stop and rewrite the state each time")
    keep_output: bool = parameter(False, "keep all the output in its topic; otherwise it is dropped as it comes")
    executor_memory_mb: int = parameter(1024, "memory of an executor on a cluster")
    executors: int | None = parameter(None, "executors on YARN; a standalone cluster gives one on every worker")
    executor_slots: int | None = parameter(None, "cores of an executor; default: 4 on YARN, those of its worker else")
    elastic: bool = parameter(False, "with --placement: request executors when the plan needs more, release idle ones")
    topics: str | None = parameter(None, "kafka://host:port[/prefix][?config=FILE]; without it topics are folders")
    trigger: Literal["micro-batch", "real-time"] = parameter("micro-batch", "real-time: one query that never waits")
    real_time_batch_s: float = parameter(10.0, "real-time mode commits so often; rescales wait for it")
    connector: bool = parameter(False, "Spark's own Kafka connector in the session, for sources and sinks that use it")

    @property
    def fits_any_session(self) -> bool:
        """Whether a session that is there already will do."""
        return self.topics is None and self.trigger == "micro-batch" and not self.connector

    def __post_init__(self) -> None:
        if self.slots is not None and self.slots < 1:
            raise ValueError(f"slots must be at least 1, got {self.slots}")
        for name in ("executors", "executor_slots"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not (math.isfinite(self.trigger_s) and self.trigger_s > 0):
            raise ValueError(f"trigger_s must be above 0, got {self.trigger_s}")
        if not self.real_time_batch_s >= 5:
            raise ValueError(f"real_time_batch_s must be at least 5, got {self.real_time_batch_s}")
        if self.topic_bound_records is not None and self.topic_bound_records < 1:
            raise ValueError(f"topic_bound_records must be at least 1, got {self.topic_bound_records}")


@dataclass(frozen=True, kw_only=True)
class PipelineFile:
    """A pipeline of the user's own, `file.py:name`; it runs on Spark only."""

    where: str
    peak_rate: float = parameter(1000.0, "records/s at load 1 for every source with a generator")

    def source_shares(self) -> dict[str, float]:
        return dict.fromkeys(self.spark().peak_rates, 1.0)

    def simulated(self) -> object:
        raise BadInputError(f"pipeline {self.where!r} runs on Spark only; use --engine spark")

    def spark(self) -> SparkJob:
        pipeline = load_pipeline(self.where)
        rates = {name: self.peak_rate for name, source in pipeline.sources.items() if source.generate}
        return SparkJob(pipeline=pipeline, peak_rates=rates)


def spark_job(spec: RunSpec) -> SparkJob:
    if isinstance(spec.pipeline, RunsOnSpark):
        return spec.pipeline.spark()
    able = [name for name in pipelines.names() if hasattr(pipelines.get(name), "spark")]
    raise BadInputError(f"this pipeline does not run on Spark; those that do: {', '.join(able)}, or file.py:name")


def local_threads_needed(spec: RunSpec, settings: SparkSettings) -> int:
    """Task threads of a session in which a run finds all its slots, with Spark in this process."""
    from sluice.spark.pipeline.engine import task_threads

    return task_threads(spark_job(spec).pipeline, settings.slots or DEFAULT_SLOTS)


def saved_run(root: Path) -> SavedState | None:
    """What was left in this folder to go on with; null if nothing was."""
    from sluice.spark.pipeline.folders import Folders

    return Folders(root).load()


@contextmanager
def working_folder(root: Path | None, *, resume: bool) -> Iterator[Path]:
    """The given folder, or one that is deleted afterwards; with `resume` it must hold a run to go on with."""
    if resume and root is None:
        raise BadInputError("--resume needs --root, the folder of the run to go on with")
    if resume and root is not None and saved_run(root) is None:
        raise BadInputError(f"unknown checkpoint: no run was saved in {str(root)!r}; expected a folder with plan.json")
    if root is not None:
        check_writable(root, "--root")
        yield root
    else:
        with TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def spark_engine(
    spec: RunSpec,
    settings: SparkSettings,
    root: Path,
    *,
    master: str | None = None,
    placement: SparkPlacement | None = None,
    nodes: NodeSetup | None = None,
) -> tuple[SparkEngine | RealTimeEngine | SizedEngine, Target]:
    """Spark set up for a run, here or on a cluster, and the plan it starts with; an earlier run has its own."""
    job = spark_job(spec)
    engine: SparkEngine | RealTimeEngine
    if nodes is not None:
        return sized_engine(spec, job, settings, root, nodes, master)
    if settings.trigger == "real-time":
        engine = real_time_engine(spec, job, settings, root, master=master)
    else:
        engine = micro_batch_engine(spec, job, settings, root, master=master, placement=placement)
    initial = {
        name: job.initial_parallelism.get(name, engine.graph[name].min_parallelism) for name in engine.graph.names
    }
    fitting = Guards(max_slots=engine.slots).fit(Target(parallelism=initial), engine.graph)
    return engine, fitting


def sized_engine(
    spec: RunSpec, job: SparkJob, settings: SparkSettings, root: Path, nodes: NodeSetup, master: str | None
) -> tuple[SizedEngine, Target]:
    """On nodes of its own: one of the default type for every operator to begin with."""
    if master is None or master == YARN:
        raise BadInputError(f"--nodes need a standalone cluster's master, spark://HOST:PORT, got {master}")
    if settings.trigger == "real-time":
        raise BadInputError("--nodes run micro-batches, got --trigger real-time")
    for name in ("slots", "executor_slots", "executors"):
        if (value := getattr(settings, name)) is not None:
            raise BadInputError(f"with --nodes an executor takes all of its node, got --spark-set {name}={value}")
    pool = nodes.pool(master, root, sum(not one.chain for one in job.pipeline.operators.values()))
    try:
        inner = micro_batch_engine(spec, job, settings, root, master=master, placement=None, nodes=nodes)
        engine = nodes.engine(inner, pool, root)
    except BaseException:
        pool.close()
        raise
    return engine, Target(parallelism=dict.fromkeys(engine.graph.names, 1))


def real_time_engine(
    spec: RunSpec, job: SparkJob, settings: SparkSettings, root: Path, *, master: str | None
) -> RealTimeEngine:
    from sluice.spark.kafka.store import KafkaTopics
    from sluice.spark.real_time.engine import RealTimeEngine

    store = topic_store(job.pipeline, settings.topics, root)
    if not isinstance(store, KafkaTopics):
        raise BadInputError("--trigger real-time reads and writes topics of a broker; give --topics kafka://host:port")
    if master is not None:
        raise BadInputError(f"--trigger real-time runs with Spark in this process, got --master {master}")
    return RealTimeEngine(
        job.pipeline,
        root,
        slots=settings.slots or DEFAULT_SLOTS,
        store=store,
        batch_s=settings.real_time_batch_s,
        feed=generator(spec, job, root / REPORT) if job.peak_rates else None,
    )


def micro_batch_engine(
    spec: RunSpec,
    job: SparkJob,
    settings: SparkSettings,
    root: Path,
    *,
    master: str | None,
    placement: SparkPlacement | None,
    nodes: NodeSetup | None = None,
) -> SparkEngine:
    from sluice.spark.session import begin_session

    if master is None and settings.fits_any_session:
        job.pipeline.validate()
        begin_session()
    from sluice.spark.kafka import connector
    from sluice.spark.pipeline.engine import SparkEngine
    from sluice.spark.pipeline.query import QuerySettings

    bound = settings.topic_bound_records if settings.topic_bound_records is not None else job.topic_bound_records
    return SparkEngine(
        job.pipeline,
        root,
        slots=settings.slots or (DEFAULT_SLOTS if master is None else None),
        master=master,
        places=placement is not None or nodes is not None,
        grows=nodes is not None,
        executors_within_s=nodes.patience_s if nodes else FIRST_EXECUTOR_S,
        elastic=placement is not None and placement.elastic,
        capacity=vars(placement.capacity) if placement else None,
        session_settings={
            **(executor_settings(settings, master) if master else {}),
            **(nodes.executor_settings() if nodes else {}),
            **connector.session_settings(kafka=settings.connector, avro=bool(job.pipeline.avro_schemas())),
        },
        settings=QuerySettings(
            trigger_s=settings.trigger_s, topic_bound_records=bound, keep_output=settings.keep_output
        ),
        rescale=settings.rescale,
        store=topic_store(job.pipeline, settings.topics, root),
        feed=generator(spec, job, root / REPORT) if job.peak_rates else None,
    )


def executor_settings(settings: SparkSettings, master: str) -> dict[str, str]:
    """Spark's names for what an executor is given."""
    slots = settings.executor_slots or (YARN_SLOTS if master == YARN else None)
    return {
        "spark.executor.memory": f"{settings.executor_memory_mb}m",
        **({"spark.executor.cores": str(slots)} if slots else {}),
        **({"spark.executor.instances": str(settings.executors or YARN_EXECUTORS)} if master == YARN else {}),
    }


def topic_store(pipeline: Pipeline, topics: str | None, root: Path) -> TopicStore | None:
    """Where the topics of a run are; a run that goes on has those it began with. None: folders below `root`."""
    from sluice.spark.kafka.choice import chosen_broker

    broker = chosen_broker(pipeline.name, topics, root)
    if broker is None:
        for name in pipeline.avro_schemas():
            raise BadInputError(
                f"{name!r} has an Avro schema, which messages of a broker have; give --topics kafka://…"
            )
        return None
    from sluice.spark.kafka.store import KafkaTopics

    return KafkaTopics(broker, pipeline.named_topics(), pipeline.avro_schemas())


def generator(spec: RunSpec, job: SparkJob, report: Path) -> GeneratorProcess:
    """Fills every source that has a peak rate with its own records, at the workload's rate."""
    from sluice.lab.generator.process import GeneratorProcess
    from sluice.lab.generator.producer import Stream

    streams = {}
    for source, rate in job.peak_rates.items():
        generate = job.pipeline.sources[source].generate
        if generate is None:
            raise BadInputError(f"source {source!r} has a peak rate but nothing that generates its records")
        curve = rate_curve(spec.workload, peak_rate=rate, seed=spec.seed, speedup=spec.speedup)
        streams[source] = Stream(generate=generate, curve=curve)
    return GeneratorProcess(streams, seed=spec.seed, report=report)


def generator_report(root: Path) -> GeneratorReport | None:
    """What the generator of the last run in this folder really produced; None if it had none."""
    from sluice.lab.generator.producer import GeneratorReport

    path = root / REPORT
    return GeneratorReport.model_validate_json(path.read_bytes()) if path.exists() else None
