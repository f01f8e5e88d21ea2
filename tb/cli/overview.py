"""What `make help` prints, gathered from the code: targets, TESTs, variables, presets."""

import dataclasses
import re

import click

from neuroncore_rtl import ROOT
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.cli import registry as bench
from neuroncore_rtl.tb.sim.report import terminal

__all__ = ["overview", "show", "targets"]

MAKEFILE = ROOT / "Makefile"


def targets() -> list[tuple[str, str]]:
    """Return the Makefile's targets with what the comment behind each says."""
    return re.findall(r"^([a-z-]+):.*?## (.+)$", MAKEFILE.read_text(), re.MULTILINE)


def show() -> None:
    """Print the overview, as wide as the terminal."""
    click.echo(overview(terminal().width), nl=False)


def overview(width: int) -> str:
    """Return the overview in lines of at most `width` characters."""
    formatter = click.HelpFormatter(width=width)
    tests = bench.tests().values()
    commands = [(f"make sim TEST={test.name}", test) for test in tests]
    commands += [(f"make {command.name}", command) for command in bench.COMMANDS]
    sections = {
        "targets": [(f"make {name}", text) for name, text in targets()],
        "TEST=, for make sim": [(test.name, test.summary) for test in tests],
        **{
            f"variables of {line}": [(f"{option.name}=", option.describe()) for option in command.options]
            for line, command in commands
        },
        "PRESET=, named configurations": [
            (name, ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in dataclasses.asdict(config).items()))
            for name, config in PRESETS.items()
        ],
    }
    for heading, rows in sections.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    return formatter.getvalue().lstrip("\n")
