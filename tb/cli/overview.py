"""Text of `make help`, generated from the code: targets, TESTs and presets, or the variables of one of them.

The overview takes 0.1 s, because this module imports no command.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.shell import shell_command, terminal
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.parameters import ParameterGroup, parameters

if TYPE_CHECKING:
    from neuroncore_rtl.run.settings import Command

__all__ = ["COMMON", "GROUPS", "MODULES", "command_help", "overview", "print_overview", "targets"]

MAKEFILE = ROOT / "Makefile"

COMMON = ("ROWS", "COLUMNS", "MAC_LATENCY", "VECTOR_LATENCY", "SBUF_BYTES", "HBM_PORTS", "HBM_BYTES", "DMA_ENGINES")
"""Parameters that the help of a TEST always lists."""


GROUPS = {
    "matmul, models": {
        "kernels.matmul": "matmul",
        "kernels.digits": "digits",
        "learning.train": "train",
        "learning.charlm": "charlm",
        "links.tensor_parallel": "tensor_parallel",
    },
    "row-wise kernels": {
        "kernels.kernels": "softmax softmax_backward crossentropy layernorm rmsnorm gelu adamw topk",
    },
    "other front ends": {"kernels.nki": "nki"},
    "layers": {
        "kernels.layers": "linear swiglu rope conv2d",
        "kernels.transformer": "attention encoder decoder",
    },
    "gradients": {
        "kernels.backward": "linear_backward layernorm_backward attention_backward encoder_backward embedding",
    },
    "engines": {
        "engines.instructions": "vector activation",
        "engines.timing": "timing",
        "kernels.sr": "sr",
    },
    "arithmetic": {"engines.mac": "mac", "engines.round": "round"},
    "core, controller": {"core.program": "program", "core.riscv": "riscv"},
    "chip links": {
        "links.router": "router",
        "links.collective": "allreduce reducescatter allgather broadcast alltoall sendrecv barrier",
        "links.collectives": "collectives",
        "links.gradients": "gradients",
    },
}
"""TESTs by module of `tb/tests/`, grouped as help lists them; a module is imported when one of its TESTs is used."""

MODULES = {name: module for group in GROUPS.values() for module, names in group.items() for name in names.split()}
"""The module of each TEST. It defines `TEST`, or `TESTS` if it has several."""


def targets() -> list[tuple[str, str]]:
    """Return the Makefile's targets and their help comments."""
    return re.findall(r"^([a-z-]+):.*?## (.+)$", MAKEFILE.read_text(), re.MULTILINE)


def print_overview(summaries: Mapping[str, str] | None = None) -> None:
    """Print the overview; `summaries`: of the commands of an installed package, as in `overview`."""
    click.echo(overview(terminal().width, summaries), nl=False)


def overview(width: int, installed: Mapping[str, str] | None = None) -> str:
    """Return the overview in lines of at most `width` characters.

    `installed` has the summaries of an installed package's commands; default: the overview has the Makefile's targets.
    """
    sizes = (f"{name} {config.rows} x {config.columns}" for name, config in PRESETS.items())
    listed = targets() if installed is None else installed.items()
    headings = ("targets", "TEST=, for make sim") if installed is None else ("commands", "TESTs")
    sections = {
        headings[0]: [(shell_command(name), text) for name, text in listed],
        headings[1]: [(group, " ".join(modules.values())) for group, modules in GROUPS.items()],
        "more": [
            (shell_command("help", "matmul"), f"variables of a TEST; of a target: {shell_command('help', 'bench')}"),
            ("PRESET=", f"the machine: {', '.join(sizes)} processing elements"),
        ],
    }
    return _text(sections, width)


def command_help(one: "Command", line: str, width: int, complete: bool = False) -> str:
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
        sections["more"] = [("ALL=1", f"{more}: {shell_command('help', one.name, 'ALL=1')}")]
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
