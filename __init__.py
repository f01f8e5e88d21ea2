"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator: what the folders beside this file hold.

`from neuroncore_rtl import run` is the way in for kernels of one's own.
"""

from pathlib import Path

__all__ = ["ROOT", "SIM_BUILD", "run"]

ROOT = Path(__file__).resolve().parent
"""The folder that all others are in."""

SIM_BUILD = (ROOT if (ROOT / "pyproject.toml").is_file() else Path.cwd()) / "sim_build"
"""Everything that is generated; safe to delete. Of an installed package it is in the working directory."""


def __getattr__(name: str):
    """Return `run` when it is first asked for: what simulates is slow to import, and few modules need it."""
    if name == "run":
        from neuroncore_rtl.tb.benches.program_run import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
