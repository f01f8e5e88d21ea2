"""Text of `make help`, generated from the code: targets, TESTs and presets, or the variables of one of them."""

import dataclasses
import re
from collections.abc import Sequence

import click

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.report import terminal
from neuroncore_rtl.run.settings import Command
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.parameters import ParameterGroup, parameters
from neuroncore_rtl.tb.cli import registry

__all__ = ["COMMON", "overview", "show", "targets"]

MAKEFILE = ROOT / "Makefile"

COMMON = ("ROWS", "COLUMNS", "MAC_LATENCY", "VECTOR_LATENCY", "SBUF_BYTES", "HBM_PORTS", "HBM_BYTES", "DMA_ENGINES")
"""Parameters that the help of a TEST always lists."""


def targets() -> list[tuple[str, str]]:
    """Return the Makefile's targets and their help comments; without a Makefile, in an installed package, none."""
    text = MAKEFILE.read_text() if MAKEFILE.is_file() else ""
    return re.findall(r"^([a-z-]+):.*?## (.+)$", text, re.MULTILINE)


def show(name: str | None, complete: bool = False, commands: Sequence[Command] = registry.COMMANDS) -> None:
    """Print the overview, or the help of a TEST or command."""
    width = terminal().width
    text = overview(width, commands) if name is None else command_help(*_find_command(name, commands), width, complete)
    click.echo(text, nl=False)


def _find_command(name: str, commands: Sequence[Command]) -> tuple[Command, str]:
    for command in commands:
        if command.name == name:
            return command, f"make {name}"
    return registry.command_named(name), f"make sim TEST={name}"


def overview(width: int, commands: Sequence[Command] = registry.COMMANDS) -> str:
    """Return the overview in lines of at most `width` characters."""
    sizes = (f"{name} {config.rows} x {config.columns}" for name, config in PRESETS.items())
    installed = [
        ("neuroncore-rtl sim", "run a TEST"),
        *((f"neuroncore-rtl {one.name}", one.summary) for one in commands),
    ]
    sections = {
        "targets": [(f"make {name}", text) for name, text in targets()] or installed,
        "TEST=, for make sim": [(group, " ".join(modules.values())) for group, modules in registry.GROUPS.items()],
        "more": [
            ("make help TEST=matmul", "summary and variables of a TEST; TEST=bench: of a target"),
            ("PRESET=", f"the machine: {', '.join(sizes)} processing elements"),
        ],
    }
    return _text(sections, width)


def command_help(one: Command, line: str, width: int, complete: bool = False) -> str:
    """Return summary and variables of a TEST or command; without `complete` only machine parameters in `COMMON`."""
    table = parameters()
    machine = {option.name: table[option.name.lower()] for option in one.options if option.name.lower() in table}
    shown = [name for name in machine if complete or name in COMMON]
    sections = {
        line: [("", one.summary)],
        "variables": [(f"{option.name}=", option.describe()) for option in one.options if option.name not in machine],
    }
    for group in ParameterGroup:
        own = [machine[name] for name in shown if machine[name].group is group]
        rows = [(f"{each.name.upper()}=", f"{each.sentence} Buys: {each.benefit}. Costs: {each.cost}.") for each in own]
        sections[f"machine, {group} (default: the preset's value)"] = rows
    if len(shown) < len(machine):
        more = f"{len(machine) - len(shown)} more parameters of the machine, and the values of each preset"
        sections["more"] = [("ALL=1", f"{more}: make help TEST={one.name} ALL=1")]
    elif machine:
        sections["PRESET=, named configurations"] = [
            (name, ", ".join(f"{key} {value}" for key, value in dataclasses.asdict(config).items()))
            for name, config in PRESETS.items()
        ]
    return _text(sections, width)


def _text(sections: dict[str, list[tuple[str, str]]], width: int) -> str:
    formatter = click.HelpFormatter(width=width)
    for heading, rows in sections.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    return formatter.getvalue().lstrip("\n")
