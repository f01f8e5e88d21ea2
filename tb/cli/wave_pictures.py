"""Pictures of waveforms: runs products in Icarus and draws their signals.

`python -m neuroncore_rtl.tb.cli.wave_pictures` writes `waves_array.svg`, `waves_engine.svg` and `waves_core.svg` into
`docs/pictures/`.
"""

import enum
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.hdl.tensor.instruction import TensorOpcode
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.targets import Rtl
from neuroncore_rtl.run.view.engine_waves import TENSOR_OPEN, tensor_groups
from neuroncore_rtl.run.view.wave_drawing import draw_waves
from neuroncore_rtl.run.view.wave_groups import traces
from neuroncore_rtl.run.view.waves import latest, signals, waveform
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.cli.array_picture import A, B
from neuroncore_rtl.tb.cli.matrices import encode_matrix
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.cli.waves import record_waves
from neuroncore_rtl.tb.tests.kernels.products import product_jobs
from neuroncore_rtl.tb.tests.scenario import run_jobs

__all__ = ["draw_core", "draw_engine", "draw_first_screen", "write_wave_pictures"]

_OPCODES = enum.IntEnum(
    "Opcode", {"load": TensorOpcode.LOAD_STATIONARY.value, "mult": TensorOpcode.MULTIPLY_MOVING.value}
)
"""Short names of the opcodes, which fit one cycle of the picture."""

_TILE = "engine.datapath.array.block_0_0.tile"

ENGINE = {
    "commands": traces(
        """
        instructions__valid bin instruction offered | instructions__ready bin instruction accepted
        instructions__payload.opcode Opcode opcode | instructions__payload.accumulate bin accumulate
        """,
        "engine",
        _OPCODES,
    ),
    "stationary": traces(
        f"""
        engine.loader.step_valid bin load step issued | engine.load_at_row0 bin row 0: load
        {_TILE}_0_0.shadow0 operand row 0: next weight | {_TILE}_0_0.active0 operand row 0: weight
        """
    ),
    "moving": traces("engine.mover.column_valid bin column issued | engine.swap_at_row0 bin row 0: swap"),
    "array": traces("\n".join(f"{_TILE}_{row}_0.moving_out operand row {row}: operand" for row in range(4))),
    "PSUM": traces(
        """
        psum.valid bin write | psum.write.address dec word | psum.write.accumulate bin accumulate
        sum0 fp32 sum of column 0
        """,
        "engine",
    ),
}

CORE = {
    "run": traces("core.controller.run bin controller runs | quiet bin all queues idle"),
    **{
        name: traces(
            f"""
            core.queue{queue}.waiting bin waits for a semaphore | core.queue{queue}.issued bin issues
            core.{name}.busy bin engine busy
            """
        )
        for queue, name in ((0, "tensor"), (1, "vector"), (3, "dma0"), (4, "dma1"))
    },
    "HBM": traces("arvalid bin read request | rvalid bin read data | wvalid bin write data"),
}


def draw_first_screen(folder: Path) -> str:
    """Draw the open groups that `make waves TEST=matmul` shows first, in the cycles of the product."""
    with recording_in(folder):
        vcd = record_waves(command_named("matmul"), [])
    known = signals(vcd)
    groups = {name: traces for name, traces in tensor_groups(known).items() if name in TENSOR_OPEN[:2]}
    return draw_waves(vcd, "tensor", groups, range(1, 17), "valid")


def draw_engine(folder: Path) -> str:
    """Draw the signals of the tensor engine for a product with two tiles of K; `folder` receives the waveform."""
    a, b = encode_matrix(np.hstack([A, A[:, ::-1]]), BF16), encode_matrix(np.vstack([B, B]), BF16)
    with recording_in(folder):
        [*run_jobs(product_jobs(a, b, BF16, PRESETS["tiny"], name="array"), Rtl(sim="icarus", waves=True, depth=0))]
        return draw_waves(waveform("array"), "tensor", ENGINE, range(1, 19), "valid")


def draw_core(folder: Path) -> str:
    """Draw the queues and engines of a core for a whole run."""
    test = command_named("matmul")
    with recording_in(folder):
        report: Any = test.run(test.settings("PRESET=tiny SIM=icarus M=8 K=8 N=12 WAVES=1".split()))
    return draw_waves(latest(test.name, folder), "machine", CORE, range(1, report.cycles + 1), "start")


def write_wave_pictures() -> None:
    """Write all pictures."""
    for name, draw in (("waves_array", draw_first_screen), ("waves_engine", draw_engine), ("waves_core", draw_core)):
        with tempfile.TemporaryDirectory() as folder:
            (ROOT / "docs" / "pictures" / f"{name}.svg").write_text(draw(Path(folder)))


if __name__ == "__main__":
    write_wave_pictures()
