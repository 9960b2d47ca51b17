"""The report as one HTML file that needs nothing else: data, style, script and the plotting library inside."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from plotly.offline import get_plotlyjs

from sluice.files import replace_file
from sluice.lab.report.content import Content, to_json


def page(content: Content) -> str:
    assets = files("sluice.lab.report") / "assets"
    return Template((assets / "page.html").read_text()).substitute(
        title=escape(content.title),
        savings=_savings(content),
        placements=_placements(content),
        notes="".join(f"<li>{escape(note)}</li>" for note in content.notes),
        environment="".join(
            f"<tr><th scope='row'>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
            for key, value in content.environment.items()
        ),
        style=(assets / "page.css").read_text(),
        script=(assets / "page.js").read_text(),
        plotly=get_plotlyjs(),
        data=to_json(content),
    )


def _savings(content: Content) -> str:
    """What attachments saved, before everything else."""
    sections = []
    for label, saved in content.savings.items():
        first, late, *decisions = (escape(sentence) for sentence in saved["sentences"])
        which = f" ({escape(label)})" if len(content.savings) > 1 else ""
        items = "".join(f"<li>{sentence}</li>" for sentence in decisions)
        mattered = f"<p>The decisions that mattered most:</p><ol>{items}</ol>" if items else ""
        sections.append(f"<section><h2>What it saved{which}</h2><p>{first}</p><p>{late}</p>{mattered}</section>")
    return "".join(sections)


def _placements(content: Content) -> str:
    several = len(content.placements) > 1
    return "".join(
        f"<section><h2>Where tasks ran{f' ({escape(label)})' if several else ''}</h2>{picture}</section>"
        for label, picture in content.placements.items()
    )


def write_page(content: Content, path: Path) -> None:
    replace_file(path, page(content).encode())
