"""What `make help` prints, gathered from the code: a screen of targets, TESTs and presets; of a TEST its variables."""

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
    """Return the Makefile's targets with what the comment behind each says."""
    return re.findall(r"^([a-z-]+):.*?## (.+)$", MAKEFILE.read_text(), re.MULTILINE)


def show(name: str | None, commands: Sequence[Command] = registry.COMMANDS) -> None:
    """Print the overview, or what there is to say of a TEST, or of a command, as wide as the terminal.

    Raises:
        UsageError: if there is no TEST, and no command, of that name.
    """
    width = terminal().width
    click.echo(overview(width) if name is None else described(*_named(name, commands), width), nl=False)


def _named(name: str, commands: Sequence[Command]) -> tuple[Command, str]:
    """Return a command or a TEST, and how make runs it."""
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
            ("make help TEST=matmul", "what a TEST does and its variables; TEST=bench: those of a target"),
            ("PRESET=", f"the machine: {', '.join(sizes)} processing elements"),
        ],
    }
    return _text(sections, width)


def described(one: Command, line: str, width: int) -> str:
    """Return what a TEST, or a command, does and takes, in lines of at most `width` characters."""
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
