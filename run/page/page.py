"""Writes the page of a run: one file without references to others, which a browser opens from the file system."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from html import escape
from pathlib import Path

from neuroncore_rtl.run.files import write_text
from neuroncore_rtl.run.page.parts import PageParts
from neuroncore_rtl.run.report import Report, recordings
from neuroncore_rtl.run.view.profile.stalls import MEANINGS

__all__ = ["write_page"]

_ASSETS = Path(__file__).with_name("assets")


def write_page(
    report: Report,
    parts: PageParts,
    *,
    command: str = "",
    files: Mapping[str, Path | str] | None = None,
    motion: str = "",
) -> Path:
    """Write the page of a report, with the parts of its runs; return its path, `reports/<name>.html`.

    Arguments:
        report: outcome of the run.
        parts: what was collected during the run.
        command: shell command that repeats the run.
        files: further files of the run, by kind.
        motion: SVG of the array in motion.
    """
    path = (recordings() / "reports" / f"{report.stem}.html").absolute()
    tile = report.wrong_tile or parts.wrong_tile
    data = {
        "title": report.test,
        "verdict": "failed" if report.problems else "model" if report.modelled else "passed",
        "command": command,
        "record": report.as_json(),
        "parts": parts.parts,
        "omitted": parts.omitted,
        "wrong_tile": {"title": str(tile), **asdict(tile)} if tile else None,
        "differences": [*parts.differences],
        "meanings": {cause.name.lower(): meaning for cause, meaning in MEANINGS.items()},
        "files": {kind: os.path.relpath(one, path.parent) for kind, one in {**parts.files, **(files or {})}.items()},
        "motion": motion,
    }
    # No text can end the script element that contains it.
    texts = {"title": escape(f"{report.test}: {data['verdict']}"), "data": json.dumps(data, separators=(",", ":"))}
    texts["data"] = texts["data"].replace("<", "\\u003c")
    return write_text(path, re.sub("@@(title|data)@@", lambda found: texts[found[1]], _frame()))


@cache
def _frame() -> str:
    """Return the page without its title and data."""
    page = (_ASSETS / "page.html").read_text(encoding="utf-8")
    return re.sub(r"@@(\w+\.[\w.]+)@@", lambda found: (_ASSETS / found[1]).read_text(encoding="utf-8"), page)
