"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator: what the folders beside this file hold."""

from pathlib import Path

__all__ = ["ROOT", "SIM_BUILD"]

ROOT = Path(__file__).resolve().parent
"""The folder that all others are in."""

SIM_BUILD = (ROOT if (ROOT / "pyproject.toml").is_file() else Path.cwd()) / "sim_build"
"""Everything that is generated; safe to delete. Of an installed package it is in the working directory."""
