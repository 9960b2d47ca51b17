"""The command line: parsing and printing only."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `sluice` command."""
