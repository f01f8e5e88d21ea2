"""Matrix products for TESTs, on the core and on the tensor engine."""

from collections.abc import Iterator

import numpy as np

from neuroncore_rtl.kernels.library.matmul import matmul, passes
from neuroncore_rtl.kernels.program import HbmTensor, Image, Program, build_image
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

MOST_INSTRUCTIONS = 1 << 19  # a minute of planning, 64 MiB of records


def ideal_cycles(m: int, k: int, n: int, fmt: Format, config: Config) -> int:
    """Return the cycles of a product if every processing element of the array works in every cycle, rounded up."""
    return -(-m * k * n * len(passes(fmt)) // (config.rows * config.columns))


def random_matrix(rng: np.random.Generator, fmt: Format, rows: int, columns: int) -> np.ndarray:
    """Return storage words [rows, columns], near 1 with some special values."""
    special = stimulus.random_codes(rng, fmt, rows * columns).reshape(rows, columns)
    usual = stimulus.ordinary_codes(rng, fmt, rows * columns).reshape(rows, columns)
    # One special element makes a whole row of the result special, so only a few rows have special elements.
    chosen = (rng.random((rows, 1)) < 0.1) & (rng.random((rows, columns)) < 0.1)
    matrix = np.where(chosen, special, usual).astype(np.uint32)
    if fmt == FP32:
        # The array multiplies the lower half separately; a zero lower half times infinity must not become NaN.
        infinite = chosen & (rng.random((rows, columns)) < 0.2)
        matrix[infinite] = rng.choice(stimulus.SIGNS, infinite.sum()) | FP32.infinity
        matrix &= np.where(rng.random((rows, columns)) < 0.2, 0xFFFF_F000, 0xFFFF_FFFF).astype(np.uint32)
    return matrix


def product_image(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, order: str = Program.order
) -> tuple[Image, HbmTensor]:
    """Return the image that multiplies A and B on the core, and the product."""
    program, product, left, right = product_program(*a.shape, b.shape[1], fmt, config, order)
    return build_image(program, [(left, a.T), (right, b)]), product


def product_program(
    m: int, k: int, n: int, fmt: Format, config: Config, order: str = Program.order
) -> tuple[Program, HbmTensor, HbmTensor, HbmTensor]:
    """Return the program that multiplies A and B on the core, the product, A transposed, and B."""
    check_instructions(m, k, n, fmt, config)
    program = Program(config, order=order)
    left, right = program.space.hbm("a", fmt, (k, m)), program.space.hbm("b", fmt, (k, n))
    product = program.space.hbm("c", INT32 if fmt is INT8 else FP32, (m, n))
    matmul(program, product, left, right)
    return program, product, left, right


def check_instructions(m: int, k: int, n: int, fmt: Format, config: Config) -> None:
    """Raise ValueError if a product exceeds `MOST_INSTRUCTIONS`."""
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
    """Yield the jobs of A x B, storage words of `fmt`, on the tensor engine; only the first has a waveform, `name`."""
    for program in tiled_products(a, b, fmt, config):
        yield DeviceJob(
            on=device or TensorDevice(config=config),
            load=TensorWork(program=program, stall=stall, seed=seed),
            doing=f"running {len(program.steps):,} instructions",
            name=name,
        )
        name = None


def gathered(results: list[Result], shape: tuple[int, int]) -> np.ndarray:
    """Return the product that the jobs computed in PSUM, [M, N]."""
    product = np.zeros(shape, np.uint32)
    for result in results:
        result.job.load.program.gather(result.outcome.memories["psum"], product)
    return product


def counters_of(results: list[Result]) -> dict[str, int]:
    """Return the summed counters of the jobs."""
    return {name: sum(result.outcome.counters[name] for result in results) for name in TENSOR_COUNTERS}


def multiply_on_core(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, on: Rtl | None = None, **how: object
) -> tuple[np.ndarray, dict[str, int]]:
    """Return A x B from the RTL, and the summed counters; arguments: see `product_jobs`, and the target."""
    results = [*run_jobs(product_jobs(a, b, fmt, config, **how), on or Rtl())]
    return gathered(results, (len(a), b.shape[1])), counters_of(results)
