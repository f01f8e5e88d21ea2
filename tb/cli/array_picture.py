"""Pictures of a matrix product in the systolic array; every number in them is a value of the simulated RTL.

`python -m neuroncore_rtl.tb.cli.array_picture` writes `docs/pictures/array.svg`, which moves, and `array_cycle.svg`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.harness.engines.tensor_trial import Trial, try_engine
from neuroncore_rtl.run.settings import UsageError, refusals
from neuroncore_rtl.run.view.array_motion import Motion, array_signals, check_array, draw_motion, read_motion
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, Format
from neuroncore_rtl.tb.cli.matrices import encode_matrix
from neuroncore_rtl.tb.stimulus.tensor_tiling import TiledProduct, tiled_products

__all__ = ["A", "B", "DrawnProduct", "run_product", "try_product", "write_pictures"]

A = np.array([[1, 2, 1, 3], [4, 1, 2, 1], [2, 3, 1, 2], [1, 1, 4, 2]])
B = np.array([[2, 1, 3, 1], [1, 4, 1, 2], [3, 2, 2, 1], [1, 2, 1, 5]])
"""Second operand of the pictures; the array holds A, and the columns of B move through it."""

MOST_COLUMNS = 100
"""Largest number of columns that may move through the array in a picture."""


@dataclass(frozen=True)
class DrawnProduct:
    """A product on the tensor engine.

    Arguments:
        motion: the array in each cycle.
        words: the product in PSUM, uint32 [M, N], words of FP32 or INT32.
        transposed: the array holds the transpose of B, and the rows of A move; otherwise it holds A.
    """

    motion: Motion
    words: np.ndarray
    transposed: bool


def run_product(a: np.ndarray, b: np.ndarray, fmt: Format, config: Config) -> DrawnProduct:
    """Multiply matrices on the tensor engine, codes of `fmt`, shapes [M, K] and [K, N].

    Raises:
        UsageError: if the array, the operands or the run are too large for a picture.
    """
    program, trial = try_product(a, b, fmt, config, array_signals(config))
    product = np.zeros((len(a), b.shape[1]), np.uint32)
    program.gather(trial.psum, product)
    return DrawnProduct(read_motion(trial.values, trial.cycles, config), product, program.tiles[0][2])


def try_product(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, names: Iterable[str] | None = None
) -> tuple[TiledProduct, Trial]:
    """Return the program of a product, see `run_product`, and its run with the signals `names`, or all.

    Raises:
        UsageError: if the array or the operands are too large for a picture.
    """
    check_array(config)
    with refusals():
        program, *more = tiled_products(a, b, fmt, config)
        moved = sum(step.instruction.columns for step in program.steps)
        if more or moved > MOST_COLUMNS:
            raise UsageError(
                f"the product of a picture must move at most {MOST_COLUMNS} columns through the array, not "
                f"{'more' if more else moved}: smaller M, K or N, or a larger array (ROWS, COLUMNS), make them fewer"
            )
        return program, try_engine(program, config, names)


def write_pictures() -> None:
    """Write both pictures of the documents."""
    folder = ROOT / "docs" / "pictures"
    motion = run_product(encode_matrix(A, BF16), encode_matrix(B, BF16), BF16, PRESETS["tiny"]).motion
    (folder / "array.svg").write_text(draw_motion(motion))
    (folder / "array_cycle.svg").write_text(draw_motion(motion, motion.busiest))


if __name__ == "__main__":
    write_pictures()
