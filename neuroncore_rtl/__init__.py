"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator.

The names below are imported at their first use, so that importing this package takes no time. docs/kernels.md explains
them, docs/nki.md explains `run_nki`, docs/jax.md `jit`.

To run:

- `run`: executes a kernel or a program on the simulated machine and returns a `Result`
- `jit`: executes a function of JAX, gradients included; `load_model`: one from a file, without JAX
- `run_nki`, `nki_machine`: the same for kernels of the Neuron Kernel Interface; their machine
- `Result`, `ProgramFailed`: the result; the error of a program that fails
- `Config`, `PRESETS`: the hardware parameters of a machine; the named machines

To write a kernel:

- `Program`: tensors and instructions; `run` passes one to the kernel
- `dma_copy`, `dma_gather`, `dma_scatter`: copies between memories, also of rows that data selects
- `load_stationary`, `multiply_moving`: products on the tensor engine
- `instructions`: module of the instructions of the vector and the scalar engine
- `AluOp`: operations of the vector engine
- `FORMATS`: number formats by name; `Draw`: random words for stochastic rounding
- `Rows`, `replicate`, `load`, `store`, `streamed`: operands and transfers for the kernels of `kernels.library`

The subpackages, such as `kernels` and `golden`, are links to the folders of the repository.
"""

import os
from pathlib import Path
from typing import Any

__all__ = [
    "FORMATS", "PRESETS", "ROOT", "SIM_BUILD", "AluOp", "Config", "Draw", "Program", "ProgramFailed", "Result", "Rows",
    "dma_copy", "dma_gather", "dma_scatter", "instructions", "jit", "load", "load_model", "load_stationary",
    "multiply_moving", "nki_machine", "replicate", "run", "run_nki", "store", "streamed",
]  # fmt: skip

_MODULES = {
    "frontends.nki": "nki_machine run_nki",
    "frontends.xla": "jit",
    "kernels.program": "Draw Program dma_copy dma_gather dma_scatter instructions load_stationary multiply_moving",
    "kernels.tiling.rows": "Rows replicate",
    "kernels.tiling.streamed": "streamed",
    "kernels.tiling.transfer": "load store",
    "run": "ProgramFailed Result run",
    "run.compiled_function": "load_model",
    "spec.config": "PRESETS Config",
    "spec.formats": "FORMATS",
    "spec.isa": "AluOp",
}
"""Public names by their module; `__init__.pyi` has the same for type checkers."""

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


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)  # also if it is a module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
