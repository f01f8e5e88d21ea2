"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator.

`from neuroncore_rtl.run import run` runs a program on the simulated machine, `from neuroncore_rtl.frontends.nki import
run_nki` a kernel of the Neuron Kernel Interface. The rooms of this package are links to the folders of the repository.
"""

import os
from pathlib import Path

__all__ = ["IN_CLONE", "ROOT", "SIM_BUILD"]

_PACKAGE = Path(__file__).resolve().parent

IN_CLONE = (_PACKAGE.parent / "pyproject.toml").is_file()
"""Whether the package is a clone's; an installed package has neither Makefile, documents nor tests."""

ROOT = _PACKAGE.parent if IN_CLONE else _PACKAGE
"""The folder that contains all rooms: the repository's, or the installed package's."""


def _generated() -> Path:
    if chosen := os.environ.get("NEURONCORE_RTL_FILES"):
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "")  # the XDG specification ignores relative paths
    return ROOT if IN_CLONE else Path(cache if os.path.isabs(cache) else Path.home() / ".cache") / "neuroncore-rtl"


SIM_BUILD = _generated() / "sim_build"
"""Generated files; safe to delete. An installed package writes them to the user's cache, one for all folders.

The variable NEURONCORE_RTL_FILES names another folder to write them to.
"""
