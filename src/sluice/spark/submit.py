"""The spark-submit command that runs an unchanged program with `attach`. Pure, but for looking for spark-submit."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sluice.errors import BadInputError

RUNNER = Path(__file__).with_name("attach") / "run.py"
"""What spark-submit gets as its program; the program itself is the first argument."""

NOT_PYTHON = (".jar", ".r", ".scala", ".ipynb", ".zip", ".whl")


def submit_command(
    spark_submit: Path, options: Sequence[str], settings: Mapping[str, str], program: Sequence[str]
) -> list[str]:
    """`options` are those of spark-submit; `settings` are `spark.sluice.*` and come last, so they win."""
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    options, program = list(options), list(program)
    if not Path(program[0]).is_file():
        raise BadInputError(f"there is no program {program[0]!r}; it must be a Python file of this machine")
    if Path(program[0]).suffix.lower() in NOT_PYTHON:
        raise BadInputError(f"the program must be a Python file, got {program[0]!r}; attach is for PySpark")
    if (_value(options, "--deploy-mode") or configured(options).get("spark.submit.deployMode")) == "cluster":
        options = _with_file(options, program[0])
        program[0] = Path(program[0]).name
    return [str(spark_submit), *options, *confs, str(RUNNER), *program]


def configured(options: Sequence[str]) -> dict[str, str]:
    """The settings that options of spark-submit give with `--conf` or `-c`."""
    pairs = (text.partition("=") for name in ("--conf", "-c") for text in _values(options, name))
    return {key: value for key, _, value in pairs}


def find_spark_submit(environment: Mapping[str, str]) -> Path:
    """That of SPARK_HOME, else that of the installed pyspark, else the one on the PATH."""
    if home := environment.get("SPARK_HOME"):
        found = Path(home) / "bin" / "spark-submit"
        if not found.exists():
            raise BadInputError(f"SPARK_HOME is {home!r}, but there is no bin/spark-submit in it")
        return found
    package = importlib.util.find_spec("pyspark")
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "bin" / "spark-submit"
    on_path = shutil.which("spark-submit", path=environment.get("PATH", os.defpath))
    if on_path is None:
        raise BadInputError("there is no spark-submit: install sluice[spark], or set SPARK_HOME to your Spark")
    return Path(on_path)


def submit_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The driver is the Python that has sluice, unless the user chose one."""
    chosen = {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"} & environment.keys()
    return {**environment, **({} if chosen else {"PYSPARK_DRIVER_PYTHON": sys.executable})}


def _value(options: Sequence[str], name: str) -> str | None:
    """Of the last time an option is given, as spark-submit reads it."""
    return next(reversed(_values(options, name)), None)


def _values(options: Sequence[str], name: str) -> list[str]:
    found = []
    for position, word in enumerate(options):
        if word == name and position + 1 < len(options):
            found.append(options[position + 1])
        elif word.startswith(f"{name}="):
            found.append(word.partition("=")[2])
    return found


def _with_file(options: list[str], file: str) -> list[str]:
    """The program travels to the driver's working folder beside the files the user sends there."""
    present = _value(options, "--files")
    return [*options, "--files", f"{present},{file}" if present else file]
