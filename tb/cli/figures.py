"""`make figures`: writes output and results of commands into the documents; `make docs` builds their site.

The project's Markdown has two kinds of marks, which are comments:

- a block, `output: make sim TEST=mac`, contains the command and all its output;
- a figure, `figure: RECORD KEY [FORMAT]`, contains one value of `sim_build/results/RECORD.json`. KEY is a path of names
  and positions, such as core.0.cycles. FORMAT is a Python format; without it integers get thousands separators.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.run.report import RESULTS, progress
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.tb.cli.registry import COMMANDS

__all__ = ["Figure", "build_site", "check_figures", "documents", "figures", "fill_figures", "value"]

_BLOCK = re.compile(r"(<!-- output: make (.+?) -->\n)(.*?)(<!-- /output -->)", re.DOTALL)
_FIGURE = re.compile(r"(<!-- figure: (\S+) (\S+)(?: (\S+))? -->)(.*?)(<!-- /figure -->)")


@dataclass(frozen=True)
class Block:
    """A fenced block in a document with a command and its output; `words` are the command's arguments, without make."""

    words: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Figure:
    """One value of a record in a document; the key is a path of names and positions, separated by dots."""

    record: str
    key: str
    format: str | None
    text: str


def documents() -> list[Path]:
    """Return the project's Markdown files."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(text: str) -> list[Block]:
    """Return the blocks of a document."""
    return [Block(tuple(found[2].split()), found[3]) for found in _BLOCK.finditer(text)]


def figures(text: str) -> list[Figure]:
    """Return the figures of a document."""
    return [Figure(*found.group(2, 3, 4, 5)) for found in _FIGURE.finditer(text)]


def value(record: object, key: str, spec: str | None = None) -> str:
    """Return a value of a record as text; a UsageError names the first part of the key that the record lacks."""
    for part in key.split("."):
        try:
            record = record[int(part)] if isinstance(record, list) else record[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UsageError(f"a figure's key must be in its record, not {key!r}: there is no {part!r}") from None
    return format(record, spec or ("," if isinstance(record, int) else ""))


def fill_figures(text: str, results: Path = RESULTS) -> str:
    """Return a document with updated figures; figures without a record stay."""

    def replace(found: re.Match) -> str:
        path = results / f"{found[2]}.json"
        text = value(json.loads(path.read_text()), found[3], found[4]) if path.is_file() else found[5]
        return f"{found[1]}{text}{found[6]}"

    return _FIGURE.sub(replace, text)


def _run_command(words: Iterable[str]) -> str | None:
    """Run a make command; return the text of its block, or None if it failed."""
    target, *rest = words
    if target not in {command.name for command in COMMANDS}:
        rest = [word.removeprefix("TEST=") for word in rest]
    command = [sys.executable, "-m", "neuroncore_rtl", target, *rest]
    line = " ".join(["make", *words])
    with progress(line):
        finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if finished.returncode:
        click.echo(f"{line} ended with status {finished.returncode}; its block is not updated", err=True)
        return None
    lines = "\n".join(part.rstrip() for part in finished.stdout.splitlines())
    return f"```\n$ {line}\n{lines}\n```\n"


def check_figures(settings: Settings) -> int:
    """Run the commands of the documents' blocks, update the blocks, then the figures; return the exit status."""
    status = 0
    lines = [" ".join(block.words) for path in documents() for block in blocks(path.read_text())]
    if not any((settings.only or "") in line for line in lines):
        raise UsageError(f"ONLY must be a part of a command in the documents, not {settings.only!r}")
    for path in documents():
        for block in blocks(path.read_text()):
            line = " ".join(block.words)
            if not settings.run or (settings.only or "") not in line:
                continue
            printed = _run_command(block.words)
            if printed is None:
                status = 1
                continue
            mark = f"<!-- output: make {line} -->\n"
            path.write_text(path.read_text().replace(f"{mark}{block.text}", f"{mark}{printed}"))
            click.echo(f"{display_path(path)}: make {line}")
    for path in documents():
        old = path.read_text()
        if (new := fill_figures(old)) != old:
            path.write_text(new)
            click.echo(f"{display_path(path)}: figures")
    return status


def build_site(settings: Settings) -> int:
    """Run MkDocs and return its exit status: every warning, such as a link to nothing, is an error."""
    # `--quiet` would silence the warnings before the strict build counts them.
    command = [sys.executable, "-m", "mkdocs", "serve" if settings.serve else "build"]
    status = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode
    if not status and not settings.serve:
        click.echo(f"site: {display_path(SIM_BUILD / 'site' / 'index.html')}")
    return status
