"""Matrix products for TESTs: operands with special values, the program on the core, and jobs of the tensor engine."""

from collections.abc import Iterator

import numpy as np

from neuroncore_rtl.kernels.library.matmul import matmul, passes
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.tensor import HbmTensor
from neuroncore_rtl.run.harness.engines.tensor import TENSOR_COUNTERS, TensorDevice, TensorWork
from neuroncore_rtl.run.job import DeviceJob
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.targets import Rtl
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, Format
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.tensor_tiling import tiled_products
from neuroncore_rtl.tb.tests.scenario import run_jobs

__all__ = [
    "check_instructions", "counters_of", "gathered", "ideal_cycles", "multiply_on_core", "product_image",
    "product_jobs", "product_program", "random_matrix",
]  # fmt: skip

MOST_INSTRUCTIONS = 1 << 19
"""Instructions of the tensor engine in an image: about a minute of planning and 64 MiB of records."""


def ideal_cycles(m: int, k: int, n: int, fmt: Format, config: Config) -> int:
    """Return the cycles in which every processing element multiplies in every cycle, rounded up."""
    return -(-m * k * n * len(passes(fmt)) // (config.rows * config.columns))


def random_matrix(rng: np.random.Generator, fmt: Format, rows: int, columns: int) -> np.ndarray:
    """Return storage words of `fmt`, uint32 of shape [rows, columns], values near 1 with special values among them."""
    special = stimulus.random_codes(rng, fmt, rows * columns).reshape(rows, columns)
    usual = stimulus.ordinary_codes(rng, fmt, rows * columns).reshape(rows, columns)
    # One special element spoils a row of the result, so most are kept to a few rows and columns.
    chosen = (rng.random((rows, 1)) < 0.1) & (rng.random((rows, columns)) < 0.1)
    matrix = np.where(chosen, special, usual).astype(np.uint32)
    if fmt == FP32:
        # Its lower half is a number of its own in the array, and if it is zero it must not meet an infinity.
        infinite = chosen & (rng.random((rows, columns)) < 0.2)
        matrix[infinite] = rng.choice(stimulus.SIGNS, infinite.sum()) | FP32.infinity
        matrix &= np.where(rng.random((rows, columns)) < 0.2, 0xFFFF_F000, 0xFFFF_FFFF).astype(np.uint32)
    return matrix


def product_image(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, order: str = Program.order
) -> tuple[Image, HbmTensor]:
    """Return the image that multiplies on the core, and the tensor of the product in HBM.

    Arguments:
        a, b: storage words of `fmt`, of shapes [M, K] and [K, N]; A is stored transposed.
        fmt, config: number format and machine.
        order: of the program's instructions.
    """
    program, product, left, right = product_program(*a.shape, b.shape[1], fmt, config, order)
    return build_image(program, [(left, a.T), (right, b)]), product


def product_program(
    m: int, k: int, n: int, fmt: Format, config: Config, order: str = Program.order
) -> tuple[Program, HbmTensor, HbmTensor, HbmTensor]:
    """Return the program that multiplies [M, K] by [K, N] on the core, the product, A transposed, and B.

    Raises:
        ValueError: if it would have more than `MOST_INSTRUCTIONS` of the tensor engine; as
            :func:`kernels.library.matmul.matmul`.
    """
    program = Program(config, order=order)
    left, right = program.space.hbm("a", fmt, (k, m)), program.space.hbm("b", fmt, (k, n))
    product = program.space.hbm("c", INT32 if fmt is INT8 else FP32, (m, n))
    check_instructions(m, k, n, fmt, config)
    matmul(program, product, left, right)
    return program, product, left, right


def check_instructions(m: int, k: int, n: int, fmt: Format, config: Config) -> None:
    """Raise ValueError if a product takes too many instructions."""
    tiles = -(-m // config.columns) * -(-k // config.rows) * -(-n // config.psum_words)
    instructions = 2 * len(passes(fmt)) * tiles
    if instructions > MOST_INSTRUCTIONS:
        raise ValueError(
            f"a product must take at most {MOST_INSTRUCTIONS:,} instructions of the tensor engine, two for each of its "
            f"tiles of {config.columns} x {config.rows} x {config.psum_words}, not {instructions:,}: smaller M, K or "
            "N, or a larger array, make them fewer"
        )


def product_jobs(
    a: np.ndarray,
    b: np.ndarray,
    fmt: Format,
    config: Config,
    *,
    name: str | None = None,
    stall: int = 0,
    seed: int = 1,
    device: TensorDevice | None = None,
) -> Iterator[DeviceJob]:
    """Yield the jobs of A x B on the tensor engine alone, a program each; the first one has a waveform.

    Arguments:
        a, b: storage words of `fmt`, of shapes [M, K] and [K, N].
        fmt, config: number format and machine.
        name: of the waveform.
        stall, seed: see `run.harness.engines.tensor.TensorWork`.
        device: a tensor engine of that configuration; None: that of its Verilog.
    """
    for program in tiled_products(a, b, fmt, config):
        yield DeviceJob(
            on=device or TensorDevice(config=config),
            load=TensorWork(program=program, stall=stall, seed=seed),
            doing=f"running {len(program.steps):,} instructions",
            name=name,
            subject=program,
        )
        name = None


def gathered(results: list[Result], shape: tuple[int, int]) -> np.ndarray:
    """Return the product that jobs of the tensor engine left in PSUM, uint32 [M, N] (FP32, or INT32 for INT8)."""
    product = np.zeros(shape, np.uint32)
    for result in results:
        result.job.subject.gather(result.outcome.memories["psum"], product)
    return product


def counters_of(results: list[Result]) -> dict[str, int]:
    """Return the sums of the tensor engine's counters over jobs."""
    return {name: sum(result.outcome.counters[name] for result in results) for name in TENSOR_COUNTERS}


def multiply_on_core(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, on: Rtl | None = None, **how: object
) -> tuple[np.ndarray, dict[str, int]]:
    """Return A x B as the RTL computes it, and the counters' sums; arguments as of `product_jobs`, and the target."""
    results = [*run_jobs(product_jobs(a, b, fmt, config, **how), on or Rtl())]
    return gathered(results, (len(a), b.shape[1])), counters_of(results)
