"""Findings with figures from the tables: `{{ page | section | row | column }}` becomes what that cell says.

A page is a file in `results/`; a section is what stands before the colon of its heading, or empty for what comes before
the first. A sentence about a cell that is not there is refused, so findings cannot outlive the tables they are about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sluice.errors import BadInputError, unknown_name

Cells = Mapping[str, Mapping[str, str]]
"""Row -> column -> text."""
PLACE = re.compile(r"\{\{([^{}]*)\}\}")


def filled(text: str, folder: Path) -> str:
    """The text with every place filled from the pages in the folder."""
    pages = {path.stem: _sections(path.read_text()) for path in sorted(folder.glob("*.md"))}
    return PLACE.sub(lambda place: _cell(place.group(1), pages), text)


def beginning(page: str) -> tuple[str, str]:
    """A page's heading, and what follows up to the second one."""
    _, title, text, *_ = re.split(r"^#+ (.*)$", page, flags=re.MULTILINE)
    return title, text.strip()


def _cell(place: str, pages: Mapping[str, Mapping[str, Cells]]) -> str:
    parts = [" ".join(part.split()) for part in place.split("|")]
    if len(parts) != 4:
        raise BadInputError(f"a place in the findings is {{{{page | section | row | column}}}}, got {place!r}")
    found: object = pages
    for what, name in zip(("page of results", "section", "row", "column"), parts, strict=True):
        assert isinstance(found, Mapping)
        if name not in found:
            raise unknown_name(f"{what} in the findings' {place.strip()!r}", name, found)
        found = found[name]
    return str(found)


def _sections(page: str) -> dict[str, Cells]:
    parts = re.split(r"^##+ (.*)$", page, flags=re.MULTILINE)
    named = {
        "": parts[0],
        **{title.partition(":")[0].strip(): text for title, text in zip(parts[1::2], parts[2::2], strict=True)},
    }
    return {name: _cells(text) for name, text in named.items()}


def _cells(text: str) -> dict[str, dict[str, str]]:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    if not lines:
        return {}
    header, _, *rows = lines
    return {row[0]: dict(zip(header, row, strict=False)) for row in rows}
