"""A bench on disk: `grid.json` says what to run, `cells/` has one file per finished cell, written in one piece.

Whatever ends a bench, what is in `cells/` is finished and what is not there is still to be done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sluice.errors import BadInputError
from sluice.files import replace_file
from sluice.lab.bench.cell import Result
from sluice.lab.bench.grid import Cell
from sluice.lab.environment import environment

FORMAT_VERSION = 1


class BenchStore:
    """The folder of one bench."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def results_path(self) -> Path:
        return self.folder / "results.parquet"

    def begin(self, cells: Sequence[Cell]) -> list[Cell]:
        """Note the grid, or check that it is the one begun here; returns what is still to be run."""
        wanted = [cell.to_data() for cell in cells]
        path = self.folder / "grid.json"
        if path.exists():
            if self._grid()["cells"] != wanted:
                raise BadInputError(f"{str(self.folder)!r} holds another bench; choose another --out, or remove it")
        else:
            content = {"version": FORMAT_VERSION, "environment": environment(), "cells": wanted}
            replace_file(path, json.dumps(content, indent=1).encode(), durable=True)
        return [cell for cell in cells if not self._path(cell).exists()]

    def cells(self) -> list[Cell]:
        return [Cell.parse(data, str(self.folder / "grid.json")) for data in self._grid()["cells"]]

    def environment(self) -> dict[str, Any]:
        found: dict[str, Any] = self._grid()["environment"]
        return found

    def save(self, result: Result) -> None:
        replace_file(self._path(result.cell), result.to_json().encode(), durable=True)

    def results(self) -> list[Result]:
        """Finished cells in the order of the grid."""
        return [self._load(path) for cell in self.cells() if (path := self._path(cell)).exists()]

    def write_table(self, results: Iterable[Result]) -> None:
        """`results.parquet`: one row per cell, in the order of the grid."""
        import pyarrow
        import pyarrow.parquet

        draft = self.folder / ".results.parquet.draft"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([result.row for result in results]), draft)
        draft.replace(self.results_path)

    def _path(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.key}.json"

    def _grid(self) -> dict[str, Any]:
        path = self.folder / "grid.json"
        try:
            content: dict[str, Any] = json.loads(path.read_text())
        except OSError as error:
            raise BadInputError(f"{str(self.folder)!r} holds no bench: {error.strerror}") from error
        except ValueError as error:
            raise BadInputError(f"{str(path)!r} is not JSON: {error}") from error
        if content.get("version") != FORMAT_VERSION:
            raise BadInputError(f"{str(path)!r} has version {content.get('version')!r}; this program reads 1")
        return content

    def _load(self, path: Path) -> Result:
        try:
            return Result.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise BadInputError(f"{str(path)!r} is not a cell's result: {error.errors()[0]['msg']}") from error


@dataclass(frozen=True)
class KeepInFolders:
    """Keeps results of several benches, each in its own folder, by the keys of their cells."""

    stores: Mapping[str, BenchStore]

    def __call__(self, result: Result) -> None:
        self.stores[result.cell.key].save(result)
