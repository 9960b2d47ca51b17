"""`sluice submit`: Run an unchanged PySpark program with auto-scaling."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from sluice.cli.app import app
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError
from sluice.protocol import policies
from sluice.spark.attach.configuration import POLICY_PREFIX, PREFIX, SETTINGS, parse_configuration
from sluice.spark.attach.suitability import check_suitable
from sluice.spark.submit import RUNNER, configured, find_spark_submit, submit_command, submit_environment

if TYPE_CHECKING:
    from typer._click.core import Context

PROGRAM = "sluice.program"


class SubmitCommand(TyperCommand):
    """Keeps what follows `--`, the program and its arguments, apart from options that are for spark-submit."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[PROGRAM] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)


@app.command("submit", cls=SubmitCommand, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def submit(
    context: typer.Context,
    policy: Annotated[str | None, typer.Option(help="The policy; see 'sluice policies'; default: sluice.")] = None,
    policy_settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Policy parameter.")
    ] = None,
    min_executors: Annotated[str | None, typer.Option(metavar="N", help="Never fewer.")] = None,
    max_executors: Annotated[str | None, typer.Option(metavar="N", help="Never more.")] = None,
    initial_executors: Annotated[str | None, typer.Option(metavar="N", help="To begin with.")] = None,
    objective: Annotated[str | None, typer.Option(metavar="TEXT", help="What to keep, e.g. 'latency<30s'.")] = None,
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="Between decisions, e.g. 10s.")] = None,
    cooldown: Annotated[str | None, typer.Option(metavar="TIME", help="Without another action after one.")] = None,
    idle: Annotated[str | None, typer.Option(metavar="TIME", help="Without a record until the minimum.")] = None,
    fulfil_within: Annotated[str | None, typer.Option(metavar="TIME", help="That executors may take.")] = None,
    journal: Annotated[str | None, typer.Option(metavar="FILE", help="File for every decision.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="FILE", help="File with what the policy learned.")] = None,
    metrics_port: Annotated[str | None, typer.Option(metavar="PORT", help="Serve Prometheus metrics here.")] = None,
    metrics_host: Annotated[str | None, typer.Option(metavar="HOST", help="Address of the metrics.")] = None,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Serve a page from the driver.")] = False,
    dashboard_port: Annotated[str | None, typer.Option(metavar="PORT", help="Of the page.")] = None,
    dashboard_host: Annotated[str | None, typer.Option(metavar="HOST", help="Of the page.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and record, but change nothing.")] = False,
    where: Annotated[bool, typer.Option("--where", help="Print the file to give to your own spark-submit.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the spark-submit command, start nothing.")] = False,
) -> None:
    """Run an unchanged PySpark program with auto-scaling.

    Options not listed here go to spark-submit as they are, such as --master, --conf or --packages. Settings become
    spark.sluice.* in the program's Spark configuration; the exit code is the program's.

    Example: sluice submit --max-executors 8 --master spark://host:7077 -- job.py argument
    """
    if where:
        print(RUNNER)
        return
    texts = {
        "policy": policy,
        "min_executors": min_executors,
        "max_executors": max_executors,
        "initial_executors": initial_executors,
        "objective": objective,
        "interval": interval,
        "cooldown": cooldown,
        "idle": idle,
        "fulfil_within": fulfil_within,
        "journal": journal,
        "memory": memory,
        "metrics_port": metrics_port,
        "metrics_host": metrics_host,
        "dashboard": "true" if dashboard else None,
        "dashboard_port": dashboard_port,
        "dashboard_host": dashboard_host,
        "dry_run": "true" if dry_run else None,
    }
    keys = {setting.argument: f"{PREFIX}{name}" for name, setting in SETTINGS.items()}
    settings = {keys[argument]: value for argument, value in texts.items() if value is not None}
    settings |= {f"{POLICY_PREFIX}{key}": value for key, value in parse_settings(policy_settings or []).items()}
    _check(settings, {keys[argument]: f"--{argument.replace('_', '-')}" for argument in texts})
    _check_policy({**configured(context.args), **settings})
    program = context.meta.get(PROGRAM)
    if not program:
        raise BadInputError("which program? give it after --, as in: sluice submit --max-executors 8 -- job.py")
    command = submit_command(find_spark_submit(os.environ), context.args, settings, program)
    if show:
        print(shlex.join(command))
        return
    sys.stdout.flush()
    os.execve(command[0], command, submit_environment(os.environ))


def _check(settings: dict[str, str], option_of: dict[str, str]) -> None:
    """Refuse before a JVM starts what `attach` would refuse in the driver, in the words of the command line."""
    try:
        parse_configuration(settings)
    except BadInputError as error:
        message = str(error)
        for key in settings.keys() & option_of.keys():
            message = message.replace(key, option_of[key])
        raise BadInputError(message) from error


def _check_policy(settings: dict[str, str]) -> None:
    """Only where it is named here: another one may be in the defaults of Spark, which only Spark reads."""
    arguments = parse_configuration(settings).arguments
    if "policy" in arguments:
        policies.create(arguments["policy"], arguments.get("policy_settings"))
        check_suitable(arguments["policy"], queries=0)
