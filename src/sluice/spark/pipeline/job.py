"""A pipeline ready to be run under a workload: what `sluice run --engine spark` needs besides the pipeline itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sluice.errors import BadInputError, unknown_name
from sluice.spark.pipeline.definition import Pipeline


@dataclass(frozen=True, kw_only=True)
class SparkJob:
    """`peak_rates` are records/s at load 1 per source with a generator; a source without one is filled by others."""

    pipeline: Pipeline
    peak_rates: Mapping[str, float] = field(default_factory=dict)
    initial_parallelism: Mapping[str, int] = field(default_factory=dict)
    topic_bound_records: int | None = None


def load_pipeline(where: str) -> Pipeline:
    """The pipeline at `file.py:name`; without a name, the only one in the file."""
    path, _, name = where.partition(":")
    file = Path(path)
    if not file.is_file():
        raise BadInputError(f"no file {path!r} to load a pipeline from")
    spec = importlib.util.spec_from_file_location(f"sluice_pipeline_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise BadInputError(f"{path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BadInputError:
        raise
    except Exception as error:
        raise BadInputError(f"{path!r} cannot be loaded: {type(error).__name__}: {error}") from error
    found = {key: value for key, value in vars(module).items() if isinstance(value, Pipeline)}
    if name:
        if name not in found:
            raise unknown_name(f"pipeline in {path!r}:", name, found)
        return found[name]
    if len(found) != 1:
        raise BadInputError(
            f"{path!r} has {len(found)} pipelines; say which: {path}:NAME ({', '.join(found) or 'none'})"
        )
    return next(iter(found.values()))
