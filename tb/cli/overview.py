"""Text of `make help`, generated from the code: targets, TESTs and presets, or the variables of one of them."""

import dataclasses
import re
from collections.abc import Sequence

import click

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.report import terminal
from neuroncore_rtl.run.settings import Command
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.cli import registry

__all__ = ["overview", "show", "targets"]

MAKEFILE = ROOT / "Makefile"


def targets() -> list[tuple[str, str]]:
    """Return the Makefile's targets and their help comments."""
    return re.findall(r"^([a-z-]+):.*?## (.+)$", MAKEFILE.read_text(), re.MULTILINE)


def show(name: str | None, commands: Sequence[Command] = registry.COMMANDS) -> None:
    """Print the overview, or the help of a TEST or command, in the width of the terminal."""
    width = terminal().width
    click.echo(overview(width) if name is None else command_help(*_find_command(name, commands), width), nl=False)


def _find_command(name: str, commands: Sequence[Command]) -> tuple[Command, str]:
    """Return a command or a TEST, and the make command line that runs it."""
    for command in commands:
        if command.name == name:
            return command, f"make {name}"
    return registry.command_named(name), f"make sim TEST={name}"


def overview(width: int) -> str:
    """Return the overview in lines of at most `width` characters."""
    sizes = (f"{name} {config.rows} x {config.columns}" for name, config in PRESETS.items())
    sections = {
        "targets": [(f"make {name}", text) for name, text in targets()],
        "TEST=, for make sim": [
            (group, " ".join(registry.tests(modules))) for group, modules in registry.GROUPS.items()
        ],
        "more": [
            ("make help TEST=matmul", "summary and variables of a TEST; TEST=bench: of a target"),
            ("PRESET=", f"the machine: {', '.join(sizes)} processing elements"),
        ],
    }
    return _text(sections, width)


def command_help(one: Command, line: str, width: int) -> str:
    """Return summary and variables of a TEST or command, in lines of at most `width` characters."""
    names = [option.name for option in one.options]
    presets = {
        name: ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in dataclasses.asdict(config).items())
        for name, config in PRESETS.items()
    }
    sections = {
        line: [("", one.summary)],
        "variables": [(f"{option.name}=", option.describe()) for option in one.options],
        "PRESET=, named configurations": [*presets.items()] if "PRESET" in names else [],
    }
    return _text(sections, width)


def _text(sections: dict[str, list[tuple[str, str]]], width: int) -> str:
    formatter = click.HelpFormatter(width=width)
    for heading, rows in sections.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    return formatter.getvalue().lstrip("\n")
