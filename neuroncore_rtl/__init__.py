"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator.

`from neuroncore_rtl.run import run` runs a program on the simulated machine, `from neuroncore_rtl.frontends.nki import
run_nki` a kernel of the Neuron Kernel Interface. The rooms of this package are links to the folders of the repository.
"""

import os
from pathlib import Path

__all__ = ["ROOT", "SIM_BUILD"]

_PACKAGE = Path(__file__).resolve().parent

ROOT = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else _PACKAGE
"""The folder that contains all rooms: the repository's, or the installed package's."""

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuroncore-rtl"

SIM_BUILD = (ROOT if ROOT != _PACKAGE else _CACHE) / "sim_build"
"""Generated files; safe to delete. An installed package writes them to the user's cache, one for all folders."""
