"""Public names of the package, for type checkers; `__init__.py` imports them at their first use."""

from pathlib import Path

from neuroncore_rtl.frontends.nki import nki_machine, run_nki
from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.kernels.program import (
    Draw,
    Program,
    dma_copy,
    dma_gather,
    dma_scatter,
    instructions,
    load_stationary,
    multiply_moving,
)
from neuroncore_rtl.kernels.tiling.rows import Rows, replicate
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.run import ProgramFailed, Result, run
from neuroncore_rtl.run.compiled_function import load_model
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.isa import AluOp

__all__ = [
    "FORMATS", "PRESETS", "ROOT", "SIM_BUILD", "AluOp", "Config", "Draw", "Program", "ProgramFailed", "Result", "Rows",
    "dma_copy", "dma_gather", "dma_scatter", "instructions", "jit", "load", "load_model", "load_stationary",
    "multiply_moving", "nki_machine", "replicate", "run", "run_nki", "store", "streamed",
]  # fmt: skip

IN_CLONE: bool
ROOT: Path
SIM_BUILD: Path
