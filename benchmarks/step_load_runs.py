"""What the benchmarks of the step load share: a run of its program in its own process, and its result in words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice.testing.step_load import program


def run_program(root: Path, home: Path, options: list[str], **settings: Any) -> dict[str, Any]:
    """The program of the step load on the cluster at `home`."""
    command = [sys.executable, "-m", program.__name__, str(root), str(home), *options]
    return run_command(command, root, **settings)


def run_command(command: list[str], root: Path, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads((root / "result.json").read_text())
    return result


def print_result(name: str, result: dict[str, Any]) -> bool:
    """Whether all was as it should be."""
    print(f"{name}: {result['records']} records, {result['lost']} lost, {result['repeated']} repeated", flush=True)
    for what, took_s in result["times_s"].items():
        print(f"    {what}: {took_s} s")
    print(f"    executors: {', '.join(f'{count} from {at_s:.0f} s' for at_s, count in result['executors'])}")
    print(f"    outcomes: {', '.join(f'{count} {kind}' for kind, count in result['outcomes'].items())}")
    for event in result["events"]:
        print(f"    event: {event}")
    sys.stdout.flush()
    return not (result["lost"] or result["repeated"] or result["query_failed"] or result["attach_failed"])
