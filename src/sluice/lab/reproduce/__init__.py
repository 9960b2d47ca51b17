"""The papers' tables run again: one file per paper; `base.py` has the rows, the tables and the registry."""

from sluice.lab.reproduce.base import Report, Reproduction, Row, Table, Verdict, reproductions

__all__ = ["Report", "Reproduction", "Row", "Table", "Verdict", "reproductions"]
