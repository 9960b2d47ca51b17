"""What starts and stops nodes: this machine, a command line, a cloud's or a Kubernetes' node pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice.errors import SluiceError, unknown_name
from sluice.model import NodeType

LONGEST_PAUSE_S = 600.0


@dataclass(frozen=True, kw_only=True)
class WorkerNode:
    """`host` is the address that its executor has in Spark; `name` is the provider's own."""

    name: str
    type: str
    host: str


class NodeProvider(Protocol):
    """Assumes: a node that was started joins the cluster's master by itself, as a worker with its type's slots.

    Every method may block, and may be called from several threads at once. What fails raises a `SluiceError` that says
    why in one line.
    """

    def types(self) -> Sequence[NodeType]:
        """What can be started; always the same answer."""
        ...

    def start(self, type_name: str, count: int) -> Sequence[WorkerNode]:
        """So many new nodes, or an error and none: whoever fails half way stops what it had started."""
        ...

    def stop(self, node: WorkerNode) -> None:
        """End a node; one that is gone already is no error."""
        ...

    def list(self) -> Sequence[WorkerNode]:
        """The nodes that were started here and are not gone; one that died is left out."""
        ...


def type_named(types: Sequence[NodeType], name: str) -> NodeType:
    found = {one.name: one for one in types}
    if name not in found:
        raise unknown_name("node type", name, found)
    return found[name]


def pause_s(first_s: float, failures: int) -> float:
    """How long to leave a provider alone that has failed so often before."""
    return min(LONGEST_PAUSE_S, first_s * 2.0 ** min(failures, 10))


def one_line(error: BaseException) -> str:
    """Whatever a provider raised."""
    text = " ".join(str(error).split())
    return text if isinstance(error, SluiceError) else f"{type(error).__name__}: {text}"
