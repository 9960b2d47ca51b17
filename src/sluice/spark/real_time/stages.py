"""The stages of a real-time query as the operators of a graph, and which targets fit them. Pure."""

from __future__ import annotations

import itertools

from sluice.errors import BadInputError, unknown_name
from sluice.model import Edge, Graph, Operator, Target
from sluice.spark.real_time.plan import READ, STATE, RealTimePlan


def stage_graph(plan: RealTimePlan, topic: str, readers: int) -> Graph:
    """`readers` is the number of partitions of the topic that is read."""
    stages = [
        Operator(
            name=READ,
            min_parallelism=readers,
            max_parallelism=readers,
            bound_by=f"one task per partition of {topic!r}",
        ),
        Operator(name=plan.name, min_parallelism=plan.min_parallelism, max_parallelism=plan.max_parallelism),
    ]
    if plan.state_partitions is not None:
        stages.append(
            Operator(
                name=STATE,
                stateful=True,
                min_parallelism=plan.state_partitions,
                max_parallelism=plan.state_partitions,
                bound_by="Spark does not rewrite the state of a real-time query",
            )
        )
    pairs = itertools.pairwise(stage.name for stage in stages)
    edges = tuple(Edge.model_validate({"from": above, "to": below}) for above, below in pairs)
    return Graph(operators=tuple(stages), edges=edges)


def check_target(target: Target, graph: Graph, slots: int) -> None:
    """Bad input where a target is for other operators, or asks for what they cannot have."""
    for name in target.parallelism:
        if name not in graph.names:
            raise unknown_name("operator", name, graph.names)
    if target.sizes or target.placement:
        raise BadInputError("real-time mode has tasks of one size, placed by Spark: no sizes, no placement")
    for operator in graph.operators:
        count = target.parallelism.get(operator.name, 0)
        if operator.bound_by and count != operator.max_parallelism:
            tasks = f"{operator.max_parallelism} tasks ({operator.bound_by})"
            raise BadInputError(f"operator {operator.name!r} has {tasks}, got {count}")
        high = operator.max_parallelism
        if count < operator.min_parallelism or (high is not None and count > high):
            raise BadInputError(
                f"operator {operator.name!r}: parallelism must be from {operator.min_parallelism} to "
                f"{high if high is not None else slots}, got {count}"
            )
    if target.slots > slots:
        raise BadInputError(f"the target needs {target.slots} slots at once, there are {slots}")
