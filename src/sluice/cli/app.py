"""The application all commands hang on. A command is imported when it runs, not before.

A command NAME is the module NAME.py of this package; the module's first line is "`sluice NAME`: one line of help". So a
new command is one new file, and the list of commands needs no import.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sluice.errors import needs_extra

if TYPE_CHECKING:
    from typer._click.core import Command, Context

FIRST_LINE = re.compile(r'"""`sluice (?P<name>[\w-]+)`: (?P<help>.+?)(?:""")?$')
HELP_WIDTH = 100
EXTRAS = {"place": "placement", "strategies": "placement", "dashboard": "dashboard"}
"""What the packages of a command come with; of all others it is `lab`."""


def help_lines() -> dict[str, str]:
    """Every command with its line of help, read from the files."""
    lines = {}
    for path in Path(__file__).parent.glob("*.py"):
        with open(path, encoding="utf-8") as source:
            if match := FIRST_LINE.match(source.readline().rstrip()):
                lines[match["name"]] = match["help"]
    return lines


def load(name: str) -> Command:
    """Import the command's module, which registers it on `app`."""
    importlib.import_module(f"sluice.cli.{name}")
    return typer.main.get_group(app).commands[name]


class CommandGroup(TyperGroup):
    """Lists every command, and imports only the one to run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, line in help_lines().items():
            self.commands.setdefault(name, TyperCommand(name, help=line, rich_markup_mode=None))

    def list_commands(self, ctx: Context) -> list[str]:
        return sorted(super().list_commands(ctx))

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        ctx.invoked_subcommand = name
        return name, load(name) if name else command, rest

    def invoke(self, ctx: Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            command = ctx.invoked_subcommand or ""
            extra = "spark" if (error.name or "").startswith("pyspark") else EXTRAS.get(command, "lab")
            with needs_extra(f"the command {command!r}", extra):
                raise


app = typer.Typer(
    name="sluice",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # plain text: drawing help with rich takes longer than everything else `sluice --help` does
    rich_markup_mode=None,
    context_settings={"max_content_width": HELP_WIDTH},
)


@app.callback()
def _root() -> None:
    """Auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies."""
