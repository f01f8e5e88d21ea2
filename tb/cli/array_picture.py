"""Pictures of the systolic array: runs a product of small integers in Icarus and draws it.

`python -m neuroncore_rtl.tb.cli.array_picture` writes `docs/pictures/array.svg`, which moves, and `array_cycle.svg`.
"""

import tempfile
from pathlib import Path

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.golden.arith import round_fp32
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.targets import Rtl
from neuroncore_rtl.run.view.array_motion import Motion, write_motion
from neuroncore_rtl.run.view.waves import waveform
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.tests.kernels.products import gathered, product_jobs
from neuroncore_rtl.tb.tests.scenario import run_jobs

__all__ = ["A", "B", "draw_product", "record_product", "write_pictures"]

A = np.array([[1, 2, 1, 3], [4, 1, 2, 1], [2, 3, 1, 2], [1, 1, 4, 2]])
B = np.array([[2, 1, 3, 1], [1, 4, 1, 2], [3, 2, 2, 1], [1, 2, 1, 5]])
"""The array holds A, and B moves."""


def record_product(a: np.ndarray, b: np.ndarray, config: Config, folder: Path) -> tuple[Path, np.ndarray]:
    """Multiply BF16 matrices on the tensor engine; return the waveform and the FP32 product."""
    words = [round_fp32(x.astype(np.float32).view(np.uint32), BF16).astype(np.uint32) for x in (a, b)]
    with recording_in(folder):
        target = Rtl(sim="icarus", waves=True, depth=0)
        results = [*run_jobs(product_jobs(*words, BF16, config, name="array"), target)]
        return waveform("array"), gathered(results, (len(a), b.shape[1])).view(np.float32)


def draw_product(target: Path, still: Path) -> Motion:
    """Multiply A by B and draw both pictures."""
    config = PRESETS["tiny"]
    with tempfile.TemporaryDirectory() as folder:
        vcd, _ = record_product(A, B, config, Path(folder))
        return write_motion(vcd, config, target, still)


def write_pictures() -> None:
    """Write both pictures."""
    folder = ROOT / "docs" / "pictures"
    draw_product(folder / "array.svg", folder / "array_cycle.svg")


if __name__ == "__main__":
    write_pictures()
