"""Where a running pipeline keeps what must outlive it, and the plan it had."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError

from sluice.errors import BadInputError
from sluice.files import replace_file
from sluice.model import Placement
from sluice.model.base import Frozen, Name, Parallelism, first_problem
from sluice.spark.topic.interface import Position


class QueryState(Frozen):
    """What a query must be started with to go on. `repartition_to` is set while its state is being rewritten."""

    parallelism: Parallelism
    state_partitions: Parallelism
    repartition_to: Parallelism | None = None


class SavedState(Frozen):
    """The plan in force, replaced atomically with every change."""

    pipeline: Name
    queries: dict[Name, QueryState]
    placement: Placement | None = None
    state_workers: dict[Name, list[Name]] = Field(
        default_factory=dict, description="query -> worker of every state partition, where tasks are placed"
    )


@dataclass(frozen=True)
class Folders:
    """The working folder of one pipeline: topics, checkpoints, the files that steer the readers, the saved plan."""

    root: Path
    external_topics: Mapping[str, Path] = field(default_factory=dict)

    def topic(self, name: str) -> Path:
        return self.external_topics.get(name, self.root / "topics" / name)

    def checkpoint(self, query: str) -> Path:
        return self.root / "checkpoints" / query

    def control(self, query: str, topic: str) -> Path:
        path = self.root / "control" / query
        path.mkdir(parents=True, exist_ok=True)
        return path / f"{topic}.json"

    def places(self, query: str) -> Path:
        """The file that tells a placed source where its partitions go."""
        path = self.root / "control" / query
        path.mkdir(parents=True, exist_ok=True)
        return path / "places"

    @property
    def classes(self) -> Path:
        path = self.root / "classes"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def _plan(self) -> Path:
        return self.root / "plan.json"

    def save(self, state: SavedState) -> None:
        replace_file(self._plan, state.to_json().encode(), durable=True)

    def load(self) -> SavedState | None:
        """The plan a run left here, or None if none ever ran."""
        try:
            text = self._plan.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return SavedState.model_validate_json(text)
        except ValidationError as error:
            raise BadInputError(f"{str(self._plan)!r} is not a saved plan: {first_problem(error)}") from error


NO_BATCHES = (-1, -1)


def last_batches(checkpoint: Path) -> tuple[int, int]:
    """The newest batch Spark has logged as begun and the newest logged as done; -1 for none."""
    return _newest(checkpoint / "offsets"), _newest(checkpoint / "commits")


def at_batch_boundary(checkpoint: Path) -> bool:
    begun, done = last_batches(checkpoint)
    return begun == done


def committed_offsets(checkpoint: Path) -> dict[str, Position]:
    """Topic -> where the last finished batch ended, from Spark's offset log."""
    _, *sources = _offset_log(checkpoint)
    offsets = [json.loads(line) for line in sources if line != "-"]
    return {offset["topic"]: offset["offset"] for offset in offsets}


def source_offsets(checkpoint: Path) -> dict[str, dict[str, int]]:
    """Topic -> offset per partition where the last finished batch ended, for Spark's own connector."""
    _, *sources = _offset_log(checkpoint)
    return {topic: offsets for line in sources if line != "-" for topic, offsets in json.loads(line).items()}


def state_partitions_of(checkpoint: Path) -> int | None:
    """In how many partitions the state is, from Spark's own record; None before the first finished batch."""
    metadata, *_ = _offset_log(checkpoint)
    found = json.loads(metadata).get("conf", {}).get("spark.sql.shuffle.partitions")
    return None if found is None else int(found)


def _offset_log(checkpoint: Path) -> list[str]:
    """The lines of the last finished batch: settings, then one per source."""
    _, done = last_batches(checkpoint)
    if done < 0:
        return ["{}"]
    return (checkpoint / "offsets" / str(done)).read_text().splitlines()[1:]


def _newest(log: Path) -> int:
    try:
        return max((int(name) for name in os.listdir(log) if name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1
