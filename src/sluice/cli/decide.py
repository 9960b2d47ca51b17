"""`sluice decide`: Ask a policy what it would do, and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sluice.cli.app import app
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError, SluiceError
from sluice.model import Observation, observation_schema, unknown_metrics
from sluice.protocol import EMPTY_MEMORY, Memory, policies


@app.command("decide")
def decide(
    observation: Annotated[
        Path | None,
        typer.Argument(help="JSON file with one observation or a list of them; '-' reads standard input."),
    ] = None,
    policy: Annotated[str, typer.Option("--policy", help="The policy to ask; see 'sluice policies'.")] = "ds2",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the policy; repeatable.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of an observation and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; this command always does.")] = True,  # noqa: ARG001
) -> None:
    """Ask a policy what it would do, and why.

    Prints {"parallelism": {operator: instances}, "reason": "..."}, with "sizes" from a policy that chooses them; for
    a list of observations a list of decisions in the same order, the policy's memory carried from one to the next.

    Example: sluice decide --policy ds2 --set over_provisioning=1.0 observation.json
    """
    if schema:
        print(json.dumps(observation_schema(), indent=2))
        return
    if observation is None:
        raise BadInputError("decide needs a file with an observation ('-' for standard input); --schema shows its form")
    chosen = policies.create(policy, parse_settings(settings or ()))
    data = _read(observation)
    memory: Memory = EMPTY_MEMORY
    answers: list[dict[str, Any]] = []
    for number, item in enumerate(data if isinstance(data, list) else [data]):
        what = f"{observation}[{number}]" if isinstance(data, list) else str(observation)
        seen = Observation.parse(item, what)
        if unknown := unknown_metrics(item):
            print(f"sluice: {what}: ignoring unknown metrics: {', '.join(unknown)}", file=sys.stderr)
        try:
            recommendation, memory = chosen.decide(seen, memory)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise SluiceError(f"{what}: policy {policy!r} failed: {error}") from error
        sizes = {"sizes": recommendation.sizes} if recommendation.sizes else {}
        parallelism = {**seen.parallelism, **recommendation.parallelism}
        answers.append({"parallelism": parallelism, **sizes, "reason": recommendation.reason})
    print(json.dumps(answers if isinstance(data, list) else answers[0], indent=2))


def _read(path: Path) -> Any:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"cannot read observation {str(path)!r}: {error}") from error
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise BadInputError(f"observation {str(path)!r} is not JSON: {error}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number JSON knows; write null for an unknown metric")
