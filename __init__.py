"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator: what the folders beside this file hold.

`from neuroncore_rtl import run` is the way in for kernels of one's own, `run_nki` for those of the Neuron Kernel
Interface.
"""

from pathlib import Path

__all__ = ["ROOT", "SIM_BUILD", "nki_machine", "run", "run_nki"]

ROOT = Path(__file__).resolve().parent
"""The folder that all others are in."""

SIM_BUILD = (ROOT if (ROOT / "pyproject.toml").is_file() else Path.cwd()) / "sim_build"
"""Everything that is generated; safe to delete. Of an installed package it is in the working directory."""


def __getattr__(name: str):
    """Return what simulates when it is first asked for: it is slow to import, and few modules need it."""
    if name == "run":
        from neuroncore_rtl.tb.benches.program_run import run

        return run
    if name == "run_nki":
        from neuroncore_rtl.tb.benches.nki_run import run_nki

        return run_nki
    if name == "nki_machine":
        from neuroncore_rtl.tb.benches.nki_host import nki_machine

        return nki_machine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
