"""The papers' tables run again: one file per paper; `base.py` has the rows, the verdicts and the registry."""

from sluice.lab.reproduce.base import Report, Reproduction, Row, Table, Verdict, count_verdicts, reproductions

__all__ = ["Report", "Reproduction", "Row", "Table", "Verdict", "count_verdicts", "reproductions"]
