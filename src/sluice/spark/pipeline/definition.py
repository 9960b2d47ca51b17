"""How a job is written: operators are functions of DataFrames, datasets go by name. Importing this needs no Spark.

Familiar from `pyspark.pipelines`: decorate functions, refer to datasets by name in any order. Different: every operator
becomes a streaming query of its own with a topic behind it, so that each can be given its own number of slots.

    pipeline = Pipeline("orders")
    pipeline.source("bids", "auction BIGINT, price DOUBLE, at TIMESTAMP")

    @pipeline.operator(max_parallelism=8)
    def euros(bids):
        return bids.withColumn("price", bids.price * 0.89)

    pipeline.sink("out", euros)
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

from sluice.errors import BadInputError, unknown_name
from sluice.model import Edge, Graph, Operator, Topology
from sluice.spark.pipeline.specs import (
    Dataset,
    Function,
    Generate,
    OperatorSpec,
    Read,
    SinkSpec,
    SourceSpec,
    Watermark,
    Write,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_DELAY = re.compile(r"\s*\d+(\.\d+)?\s+[A-Za-z]+\s*\Z")


class Pipeline:
    """A job under construction. `validate` looks at all of it; what one call can see is refused at once.

    `chain=True` lets neighbouring operators without state share one query (and one parallelism) where nothing else
    reads what is between them: no topic there, but no scaling apart either.
    """

    def __init__(self, name: str, *, chain: bool = False) -> None:
        self.name = _checked_name("pipeline", name)
        self.chain = chain
        self.sources: dict[str, SourceSpec] = {}
        self.operators: dict[str, OperatorSpec] = {}
        self.sinks: dict[str, str] = {}
        self.sink_specs: dict[str, SinkSpec] = {}

    @overload
    def source(self, name: Read, /) -> Dataset: ...
    @overload
    def source(
        self,
        name: str,
        schema: StructType | str,
        *,
        generate: Generate | None = None,
        topic: str | None = None,
    ) -> Dataset: ...
    @overload
    def source(self, name: str, *, topic: str, avro: str) -> Dataset: ...

    def source(
        self,
        name: str | Read,
        schema: StructType | str | None = None,
        *,
        generate: Generate | None = None,
        topic: str | None = None,
        avro: str | None = None,
    ) -> Dataset:
        """Declare a dataset that arrives from outside; `schema` as Spark takes it, a DDL string or a StructType.

        `topic` is its name on a broker. Its messages are JSON objects of the schema, bytes with the schema
        `value BINARY`, or of the Avro schema `avro` (JSON, as in an .avsc file).
        As a decorator: of a function of the session that returns a streaming DataFrame, whatever Spark reads.
        """
        if callable(name):
            self._claim("source", name.__name__)
            self.sources[name.__name__] = SourceSpec(name=name.__name__, schema=None, read=name)
            return Dataset(name.__name__)
        self._claim("source", name)
        if (schema is None) == (avro is None):
            raise BadInputError(f"source {name!r} needs a schema, an Avro schema, or a function: @pipeline.source")
        if avro is not None:
            _check_avro(f"source {name!r}", avro, topic)
        self.sources[name] = SourceSpec(name=name, schema=schema, generate=generate, topic=topic, avro=avro)
        return Dataset(name)

    @overload
    def operator(self, name: Function, /) -> Dataset: ...
    @overload
    def operator(self, name: str, function: Function, /, *inputs: Dataset | str, **options: Any) -> Dataset: ...
    @overload
    def operator(self, name: str | None = None, /, **options: Any) -> Callable[[Function], Dataset]: ...

    def operator(
        self,
        name: str | Function | None = None,
        function: Function | None = None,
        /,
        *inputs: Dataset | str,
        **options: Any,
    ) -> Dataset | Callable[[Function], Dataset]:
        """Add an operator: `operator("name", function, input, ...)`, or as a decorator with or without options.

        A decorated function is named by its own name and reads the datasets its parameters name, unless
        `inputs=[...]` says otherwise. Options: `stateful`, `min_parallelism`, `max_parallelism`, `slot_rate` (records/s
        one slot may read, to let a laptop stand in for a cluster), `slot_efficiency` (parallelism -> the share of that
        rate which each of so many slots keeps: a capacity curve), `watermark=(column, delay)` for all inputs
        or `{input: (column, delay)}`, `output_mode` ("append" or "update"), `state_partitions` (key groups: the
        useful parallelism without moving state), `chain`.
        """
        if callable(name):
            return self._add(name.__name__, name, _parameters(name), options)
        if function is not None:
            if name is None:
                raise BadInputError("an operator needs a name, got None")
            return self._add(name, function, tuple(map(_name_of, inputs)), options)

        def decorate(decorated: Function) -> Dataset:
            given = options.pop("inputs", None)
            read = _parameters(decorated) if given is None else tuple(map(_name_of, given))
            return self._add(name or decorated.__name__, decorated, read, options)

        return decorate

    def sink(
        self,
        name: str,
        dataset: Dataset | str,
        write: Write | None = None,
        *,
        topic: str | None = None,
        format: str | None = None,
        avro: str | None = None,
        **options: Any,
    ) -> None:
        """Keep what an operator produces as the topic `name`, or (on a broker) as the topic `topic`.

        Messages are JSON objects, of the Avro schema `avro`, or (from a single column `value BINARY`) bytes.

        With `format` it goes to a sink of Spark instead, `options` being the sink's; with `write` every batch goes to
        that function. Such an operator is the last of its branch: nothing else can read it.
        """
        operator = _name_of(dataset)
        self._claim("sink", name)
        if operator in self.sinks.values():
            raise BadInputError(f"sink {name!r}: operator {operator!r} already has a sink")
        if sum(one is not None for one in (write, topic, format)) > 1 or (options and format is None):
            raise BadInputError(f"sink {name!r} takes one of a topic, a format with its options, and a function")
        if avro is not None:
            _check_avro(f"sink {name!r}", avro, topic)
        self.sinks[name] = operator
        spec = SinkSpec(
            name=name, operator=operator, topic=topic, format=format, write=write, avro=avro, options=options
        )
        self.sink_specs[name] = spec

    def validate(self) -> None:
        """Everything that can be known before Spark starts; raises BadInputError with one line."""
        where = f"pipeline {self.name!r}"
        if not self.operators:
            raise BadInputError(f"{where} has no operators")
        known = {*self.sources, *self.operators}
        for operator in self.operators.values():
            for read in operator.inputs:
                if read not in known:
                    raise unknown_name(f"input of operator {operator.name!r}:", read, known)
        for sink, read in self.sinks.items():
            if read not in self.operators:
                raise unknown_name(f"operator of sink {sink!r}:", read, self.operators)
            if not self.sink_specs[sink].is_topic and self.consumers_of(read):
                reader = self.consumers_of(read)[0]
                raise BadInputError(
                    f"sink {sink!r}: operator {read!r} writes to it and to no topic, so {reader!r} cannot read it; "
                    "give the sink an operator of its own"
                )
        _ = self.topology
        used = {read for operator in self.operators.values() for read in operator.inputs} | set(self.sinks.values())
        for name in known - used:
            raise BadInputError(f"{where}: nothing reads {name!r}; give it an operator or a sink")

    @property
    def topology(self) -> Topology:
        """Operators and who feeds whom; a cycle is bad input."""
        edges = tuple(
            (read, operator.name)
            for operator in self.operators.values()
            for read in operator.inputs
            if read in self.operators
        )
        try:
            return Topology.of(self.operators, edges)
        except ValueError as error:
            raise BadInputError(f"pipeline {self.name!r}: {error}") from error

    @property
    def graph(self) -> Graph:
        """The job as policies see it before Spark has been asked: nothing chained, undeclared state unknown."""
        self.validate()
        return Graph(
            operators=tuple(
                Operator(
                    name=spec.name,
                    stateful=bool(spec.stateful),
                    min_parallelism=spec.min_parallelism,
                    max_parallelism=spec.max_parallelism,
                )
                for spec in self.operators.values()
            ),
            edges=tuple(Edge.model_validate({"from": source, "to": target}) for source, target in self.topology.edges),
        )

    def consumers_of(self, dataset: str) -> tuple[str, ...]:
        return tuple(name for name, operator in self.operators.items() if dataset in operator.inputs)

    def topic_of(self, dataset: str) -> str:
        """Name of the topic a dataset lives in: its sink's name if it has one."""
        return next((sink for sink, operator in self.sinks.items() if operator == dataset), dataset)

    def named_topics(self) -> dict[str, str]:
        """Sources and sinks whose topics have a name (or, embedded, a folder) of their own."""
        specs: list[SourceSpec | SinkSpec] = [*self.sources.values(), *self.sink_specs.values()]
        return {spec.name: spec.topic for spec in specs if spec.topic is not None}

    def avro_schemas(self) -> dict[str, str]:
        """Of the sources and sinks whose messages are Avro."""
        specs: list[SourceSpec | SinkSpec] = [*self.sources.values(), *self.sink_specs.values()]
        return {spec.name: spec.avro for spec in specs if spec.avro is not None}

    def _add(self, name: str, function: Function, inputs: tuple[str, ...], options: Mapping[str, Any]) -> Dataset:
        self._claim("operator", name)
        self.operators[name] = _operator_spec(name, function, inputs, {"chain": self.chain, **options})
        return Dataset(name)

    def _claim(self, kind: str, name: str) -> None:
        """One space of names: datasets and sinks are folders side by side."""
        _checked_name(kind, name)
        taken = [
            other
            for other, names in (("source", self.sources), ("operator", self.operators), ("sink", self.sinks))
            if name in names
        ]
        if taken:
            raise BadInputError(f"{kind} {name!r}: there is already a {taken[0]} of that name")


def _check_avro(where: str, avro: str, topic: str | None) -> None:
    if topic is None:
        raise BadInputError(f"{where} has an Avro schema, but no topic=NAME of a broker whose messages it describes")
    try:
        json.loads(avro)
    except (TypeError, ValueError) as error:
        raise BadInputError(f"{where}: avro must be an Avro schema as JSON text: {error}; got {avro!r}") from error


def _operator_spec(name: str, function: Function, inputs: tuple[str, ...], options: Mapping[str, Any]) -> OperatorSpec:
    where = f"operator {name!r}"
    settings = dict(options)
    watermark = settings.pop("watermark", None)
    allowed = set(OperatorSpec.__dataclass_fields__) - {"name", "function", "inputs", "watermarks"}
    for option in settings:
        if option not in allowed:
            raise unknown_name(f"option of {where}:", option, allowed | {"watermark"})
    if not callable(function):
        raise BadInputError(f"{where} needs a function of DataFrames, got {function!r}")
    if not inputs:
        raise BadInputError(f"{where} reads nothing; name at least one dataset")
    if len(set(inputs)) != len(inputs):
        raise BadInputError(f"{where} reads a dataset twice: {', '.join(inputs)}; use it twice inside the function")
    try:
        inspect.signature(function).bind(*inputs)
    except TypeError as error:
        raise BadInputError(
            f"{where} reads {len(inputs)} dataset(s), its function does not take them: {error}"
        ) from None
    spec = OperatorSpec(
        name=name, function=function, inputs=inputs, watermarks=_watermarks(where, watermark, inputs), **settings
    )
    _check_bounds(where, spec)
    return spec


def _check_bounds(where: str, spec: OperatorSpec) -> None:
    if spec.min_parallelism < 1:
        raise BadInputError(f"{where}: min_parallelism must be at least 1, got {spec.min_parallelism}")
    if spec.max_parallelism is not None and spec.max_parallelism < spec.min_parallelism:
        raise BadInputError(
            f"{where}: max_parallelism must be at least min_parallelism ({spec.min_parallelism}), "
            f"got {spec.max_parallelism}"
        )
    if spec.state_partitions < 1:
        raise BadInputError(f"{where}: state_partitions must be at least 1, got {spec.state_partitions}")
    if spec.slot_rate is not None and not spec.slot_rate > 0:
        raise BadInputError(f"{where}: slot_rate must be positive records/s, got {spec.slot_rate}")
    if spec.slot_efficiency is not None and spec.slot_rate is None:
        raise BadInputError(f"{where}: slot_efficiency needs a slot_rate to be a share of")
    if spec.slot_efficiency is not None and not spec.slot_efficiency(1) > 0:
        raise BadInputError(f"{where}: slot_efficiency must be above 0, got {spec.slot_efficiency(1)} for 1 slot")
    if spec.output_mode not in ("append", "update"):
        raise BadInputError(f"{where}: output_mode must be 'append' or 'update', got {spec.output_mode!r}")


def _watermarks(where: str, given: Any, inputs: tuple[str, ...]) -> dict[str, Watermark]:
    if given is None:
        return {}
    per_input = given if isinstance(given, Mapping) else dict.fromkeys(inputs, given)
    for name, found in per_input.items():
        if name not in inputs:
            raise unknown_name(f"input in the watermark of {where}:", str(name), inputs)
        pair = tuple(found) if isinstance(found, (tuple, list)) else ()
        if len(pair) != 2 or not all(isinstance(part, str) for part in pair) or not _DELAY.match(pair[1]):
            raise BadInputError(
                f"{where}: watermark must be (column, delay) such as ('at', '10 seconds'), got {found!r}"
            )
    return {name: (column, delay) for name, (column, delay) in per_input.items()}


def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _name_of(dataset: Dataset | str) -> str:
    return dataset.name if isinstance(dataset, Dataset) else dataset


def _checked_name(kind: str, name: str) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise BadInputError(f"{kind} name must be a letter, then letters, digits, '_' or '-', got {name!r}")
    return name
