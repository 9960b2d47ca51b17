"""The options about nodes that commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sluice.errors import BadInputError

if TYPE_CHECKING:
    from sluice.lab.spark_nodes import NodeSetup

Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="Spark: start and stop nodes of these sizes (a price table, see 'sluice sizes') on the --master.",
    ),
]
DefaultType = Annotated[
    str | None, typer.Option(help="Size of an instance where the policy recommends none; default: the middle one.")
]
NodeStart = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Starts a node of {type} and prints its HOST; default: workers here."),
]
NodeStop = Annotated[str | None, typer.Option(metavar="COMMAND", help="Stops {node}.")]
NodeList = Annotated[str | None, typer.Option(metavar="COMMAND", help="Lists the nodes there are.")]
MostNodes = Annotated[int | None, typer.Option(help="Most nodes at a time; default: no limit.")]


def chosen_nodes(
    types: str | None,
    *,
    node_type: str | None,
    node_start: str | None,
    node_stop: str | None,
    node_list: str | None,
    most_nodes: int | None,
) -> NodeSetup | None:
    """Checked before anything starts; null without --nodes."""
    given = {
        "--node-type": node_type,
        "--node-start": node_start,
        "--node-stop": node_stop,
        "--node-list": node_list,
        "--most-nodes": most_nodes,
    }
    if types is None:
        for option, value in given.items():
            if value is not None:
                raise BadInputError(f"{option} needs --nodes, the sizes there are; got {value!r}")
        return None
    from sluice.lab.spark_nodes import node_setup

    return node_setup(
        types, default_type=node_type, start=node_start, stop=node_stop, listing=node_list, most=most_nodes
    )
