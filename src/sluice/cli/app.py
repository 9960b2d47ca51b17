"""The application all commands hang on."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="sluice",
    help="Auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies."""
