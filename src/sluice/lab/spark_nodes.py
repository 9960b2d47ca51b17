"""Runs on nodes that are started and stopped as sizes are needed: who starts them, and with how many a run begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import BadInputError, unknown_name
from sluice.learning.instance_sizes import node_types
from sluice.model import NodeType
from sluice.protocol import Policy, recommends_sizes
from sluice.spark.nodes.command import CommandNodes, NodeCommands
from sluice.spark.nodes.local import LocalNodes
from sluice.spark.nodes.provider import NodeProvider

if TYPE_CHECKING:
    from sluice.spark.nodes.engine import SizedEngine
    from sluice.spark.nodes.pool import NodePool
    from sluice.spark.pipeline.engine import SparkEngine

NODES_FOLDER = "nodes"
NODES_FILE = "nodes.json"
LEAST_PATIENCE_S, PATIENCE = 120.0, 4.0


@dataclass(frozen=True, kw_only=True)
class NodeSetup:
    """`commands` start nodes elsewhere; without them they are workers on this machine."""

    types: tuple[NodeType, ...]
    default_type: str
    commands: NodeCommands | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        names = [one.name for one in self.types]
        if self.default_type not in names:
            raise unknown_name("node type", self.default_type, names)
        if self.most is not None and self.most < 1:
            raise BadInputError(f"--most-nodes must be at least 1, got {self.most}")

    @property
    def patience_s(self) -> float:
        """How long what was requested may take to come before the target becomes what is there."""
        return max(LEAST_PATIENCE_S, PATIENCE * max(one.start_s for one in self.types))

    def provider(self, master: str, root: Path) -> NodeProvider:
        if self.commands is not None:
            return CommandNodes(self.commands, self.types, master, root / NODES_FILE)
        return LocalNodes(master, self.types, root / NODES_FOLDER)

    def pool(self, master: str, root: Path, operators: int) -> NodePool:
        """With the first nodes started: those that an earlier run in the folder had, else one for every operator."""
        from sluice.spark.nodes.engine import saved_sizes
        from sluice.spark.nodes.pool import NodePool
        from sluice.spark.nodes.shares import nodes_needed

        saved = saved_sizes(root)
        first = nodes_needed(saved.sizes, shared=saved.shared_nodes) if saved else {self.default_type: operators}
        if unknown := sorted(first.keys() - {one.name for one in self.types}):
            raise BadInputError(f"the run in {str(root)!r} had nodes of type {unknown[0]!r}, which --nodes has not")
        pool = NodePool(self.provider(master, root), most=self.most)
        try:
            pool.begin(first)
        except BaseException:
            pool.close()
            raise
        return pool

    def engine(self, inner: SparkEngine, pool: NodePool, root: Path) -> SizedEngine:
        from sluice.spark.nodes.engine import SizedEngine

        return SizedEngine(inner, pool, default_type=self.default_type, root=root)

    def executor_settings(self) -> dict[str, str]:
        """An executor takes all cores of its worker. What Spark requests of its memory is the same everywhere, so the
        smallest type's; a worker may give it more.
        """
        return {"spark.executor.memory": f"{int(min(one.memory_mb for one in self.types))}m"}

    def check_policy(self, name: str, policy: Policy) -> None:
        """A policy that recommends sizes must recommend some of these, and know them as they are."""
        if not recommends_sizes(policy):
            return
        offered = {one.name: one.size for one in self.types}
        for size in getattr(policy, "sizes", ()):
            if size.name not in offered:
                raise BadInputError(
                    f"policy {name!r} recommends size {size.name!r}, --nodes has {', '.join(sorted(offered))}"
                )
            if size != offered[size.name]:
                raise BadInputError(
                    f"policy {name!r}: size {size.name!r} has {size.cpu_cores:g} cores, {size.memory_mb:g} MB and a "
                    f"price of {size.price_per_hour:g} in its price table, and others in --nodes"
                )


def node_setup(
    types: str,
    *,
    default_type: str | None,
    start: str | None,
    stop: str | None,
    listing: str | None,
    most: int | None,
) -> NodeSetup:
    """From the options of the command line."""
    if (start is None) != (stop is None):
        raise BadInputError("--node-start and --node-stop go together: nodes that were started have to be stopped")
    if listing is not None and start is None:
        raise BadInputError(f"--node-list is for nodes of --node-start, got {listing!r} without it")
    known = node_types(types)
    commands = None if start is None or stop is None else NodeCommands(start=start, stop=stop, list=listing)
    middle = sorted(known, key=lambda one: one.cpu_cores)[(len(known) - 1) // 2].name
    return NodeSetup(types=known, default_type=default_type or middle, commands=commands, most=most)


def with_prices(settings: Mapping[str, str], policy: str, types: str) -> dict[str, str]:
    """The node types are the price table of a policy that chooses among sizes, unless it was given another."""
    return {"prices": types, **settings} if policy == "qescalor" else dict(settings)
