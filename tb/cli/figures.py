"""`make figures`: what documents show of a run is written into them by the command that ran.

Two marks stand in the Markdown of the project, as comments that no reader sees:

- a block, `output: make sim TEST=mac`, holds the command and all that it printed;
- a figure, `figure: RECORD KEY [FORMAT]`, holds one value of `sim_build/results/RECORD.json`. KEY is a path of names
  and positions, such as core.0.cycles; FORMAT is Python's, and without it whole numbers have commas.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.report import RESULTS, progress, shown
from neuroncore_rtl.run.settings import Settings, UsageError

__all__ = ["Figure", "check_figures", "documents", "figures", "filled", "value"]

_BLOCK = re.compile(r"(<!-- output: make (.+?) -->\n)(.*?)(<!-- /output -->)", re.DOTALL)
_FIGURE = re.compile(r"(<!-- figure: (\S+) (\S+)(?: (\S+))? -->)(.*?)(<!-- /figure -->)")


@dataclass(frozen=True)
class Block:
    """What a command printed.

    Arguments:
        words: of its command line, without make.
        text: the command and its output, between two fences.
    """

    words: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Figure:
    """One value of a record.

    Arguments:
        record: name of the file in `sim_build/results/`, without its ending.
        key: names and positions from the record down to the value, with dots between.
        format: how it is written; None for the plain way.
        text: how it stands in the document.
    """

    record: str
    key: str
    format: str | None
    text: str


def documents() -> list[Path]:
    """Return the project's Markdown files."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def blocks(text: str) -> list[Block]:
    """Return the blocks of a document, in order."""
    return [Block(tuple(found[2].split()), found[3]) for found in _BLOCK.finditer(text)]


def figures(text: str) -> list[Figure]:
    """Return the figures of a document, in order."""
    return [Figure(*found.group(2, 3, 4, 5)) for found in _FIGURE.finditer(text)]


def value(record: object, key: str, spec: str | None = None) -> str:
    """Return a value of a record as documents write it.

    Raises:
        UsageError: if the record has no such key; the message names the first part that it lacks.
    """
    for part in key.split("."):
        try:
            record = record[int(part)] if isinstance(record, list) else record[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UsageError(f"a figure's key must be in its record, not {key!r}: there is no {part!r}") from None
    return format(record, spec or ("," if isinstance(record, int) else ""))


def filled(text: str, results: Path = RESULTS) -> str:
    """Return a document with its figures taken from the records; one without a record stays as it is.

    Raises:
        UsageError: as :func:`value`.
    """

    def replaced(found: re.Match) -> str:
        path = results / f"{found[2]}.json"
        text = value(json.loads(path.read_text()), found[3], found[4]) if path.is_file() else found[5]
        return f"{found[1]}{text}{found[6]}"

    return _FIGURE.sub(replaced, text)


def _printed(words: Iterable[str]) -> str | None:
    """Run a command of make's; return the block's text, None if it failed."""
    target, *rest = words
    rest = [word.removeprefix("TEST=") for word in rest]
    command = [sys.executable, "-m", "neuroncore_rtl", target, *rest]
    line = " ".join(["make", *words])
    with progress(line):
        finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if finished.returncode:
        click.echo(f"{line} ended with status {finished.returncode}; its block stays as it is", err=True)
        return None
    lines = "\n".join(part.rstrip() for part in finished.stdout.splitlines())
    return f"```\n$ {line}\n{lines}\n```\n"


def check_figures(settings: Settings) -> int:
    """Run the commands that documents show, write what they printed, then the figures; return the exit status."""
    status = 0
    lines = [" ".join(block.words) for path in documents() for block in blocks(path.read_text())]
    if not any((settings.only or "") in line for line in lines):
        raise UsageError(f"ONLY must be a part of a command that documents show, not {settings.only!r}")
    for path in documents():
        for block in blocks(path.read_text()):
            line = " ".join(block.words)
            if not settings.run or (settings.only or "") not in line:
                continue
            printed = _printed(block.words)
            if printed is None:
                status = 1
                continue
            mark = f"<!-- output: make {line} -->\n"
            path.write_text(path.read_text().replace(f"{mark}{block.text}", f"{mark}{printed}"))
            click.echo(f"{shown(path)}: make {line}")
    for path in documents():
        old = path.read_text()
        if (new := filled(old)) != old:
            path.write_text(new)
            click.echo(f"{shown(path)}: figures")
    return status
