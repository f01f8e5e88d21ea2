"""TEST=matmul: a matrix product of any shape on the tensor engine, every element against golden, bit for bit."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from golden import tensor as golden
from kernels.matmul import matmul_programs
from spec.config import Config
from spec.formats import FP32, MATMUL_FORMATS, Format, format_named
from tb import simulation, stimulus
from tb.bench import DEPTH, SEED, SIM, WAVES, Bench, Option, Settings, configuration_options, dtype_option
from tb.report import Report, progress, shown
from tb.tensor import COUNTERS, design, run_program
from tb.waves import waveform, write_save_file

__all__ = ["BENCH", "ideal_cycles", "multiply", "random_matrix"]

PASSES = {True: 4, False: 1}
"""Passes of the array: four for FP32, one for every other format."""


def ideal_cycles(m: int, k: int, n: int, fmt: Format, config: Config) -> int:
    """Return the cycles in which every processing element multiplies in every cycle, rounded up."""
    return -(-m * k * n * PASSES[fmt is FP32] // (config.rows * config.columns))


def random_matrix(rng: np.random.Generator, fmt: Format, rows: int, columns: int) -> np.ndarray:
    """Return storage words of `fmt`, uint32 of shape [rows, columns], values near 1 with special values among them."""
    special = stimulus.random_codes(rng, fmt, rows * columns).reshape(rows, columns)
    usual = stimulus.ordinary_codes(rng, fmt, rows * columns).reshape(rows, columns)
    # One special element spoils a row of the result, so most are kept to a few rows and columns.
    chosen = (rng.random((rows, 1)) < 0.1) & (rng.random((rows, columns)) < 0.1)
    return np.where(chosen, special, usual).astype(np.uint32)


def multiply(
    a: np.ndarray,
    b: np.ndarray,
    fmt: Format,
    config: Config,
    *,
    sim: str = "verilator",
    stall: int = 0,
    seed: int = 1,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> tuple[np.ndarray, dict[str, int]]:
    """Return A x B as the RTL computes it, uint32 of shape [M, N] (FP32, or INT32 for INT8), and the counters' sums.

    Arguments:
        a, b: storage words of `fmt`, of shapes [M, K] and [K, N].
        fmt, config: number format and machine.
        sim: the simulator.
        stall, seed: see `tb.tensor.run_program`.
        waves: where to record a waveform, of the first program if there are several.
        waves_levels: see `tb.simulation.run`.
    """
    built = simulation.build(design(config), sim, waves=waves is not None)
    result = np.zeros((a.shape[0], b.shape[1]), np.uint32)
    totals = dict.fromkeys(COUNTERS, 0)
    for number, program in enumerate(matmul_programs(a, b, fmt, config)):
        path = waves if number == 0 else None
        with progress(f"{sim}: running {len(program.steps):,} instructions"):
            outcome = run_program(built, program, config, stall=stall, seed=seed, waves=path, waves_levels=waves_levels)
        program.gather(outcome.words, result)
        for name in COUNTERS:
            totals[name] += outcome.counters[name]
    return result, totals


def _run(settings: Settings) -> Report:
    config = settings.config
    fmt = format_named(settings.dtype)
    m, k, n = settings.m, settings.k, settings.n
    rng = np.random.default_rng(settings.seed)
    a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
    label = f"{settings.preset}-{config.rows}x{config.columns}-{fmt.name}-{m}x{k}x{n}-{settings.sim}"
    waves = waveform("matmul") if settings.waves else None
    result, counters = multiply(
        a,
        b,
        fmt,
        config,
        sim=settings.sim,
        stall=settings.stall,
        seed=settings.seed,
        waves=waves,
        waves_levels=settings.depth,
    )
    with progress("golden"):
        expected = golden.matmul(a, b, fmt, config.rows)
    differs = np.argwhere(result != expected)
    for row, column in differs[:10]:
        print(f"C[{row}, {column}]: RTL {result[row, column]:08x}, golden {expected[row, column]:08x}")
    return Report(
        test="matmul",
        label=label,
        settings=dict(settings.values),
        compared=result.size,
        mismatches=len(differs),
        cycles=counters["cycles"],
        ideal_cycles=ideal_cycles(m, k, n, fmt, config),
        extra={
            "shape": f"[{m}, {k}] x [{k}, {n}] {fmt.name} on {config.rows} x {config.columns}",
            "config": asdict(config),
            "counters": counters,
            **({"waveform": shown(write_save_file(waves))} if waves else {}),
        },
    )


def _size(name: str, default: int, what: str) -> Option:
    return Option(name=name, type=int, default=default, help=what, minimum=1, maximum=1 << 20)


BENCH = Bench(
    name="matmul",
    summary="matrix product of any shape on the tensor engine, tiled, every element against golden",
    options=(
        _size("M", 64, "rows of A and C"),
        _size("K", 64, "columns of A, rows of B"),
        _size("N", 64, "columns of B and C"),
        dtype_option(fmt.name for fmt in MATMUL_FORMATS),
        *configuration_options("small"),
        SEED,
        Option(
            name="STALL",
            type=int,
            default=0,
            help="every stream pauses in so many of 256 cycles, at random",
            minimum=0,
            maximum=240,
        ),
        SIM,
        WAVES,
        DEPTH,
    ),
    run=_run,
)
