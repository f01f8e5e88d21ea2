"""TEST=matmul: a matrix product of any shape, every element against golden, bit for bit.

TARGET=core is the machine as its users have it: one image in HBM, which loads, multiplies and stores by itself.
TARGET=engine is the tensor engine alone, with a harness in place of the memories.
"""

from pathlib import Path

import numpy as np

from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.kernels.library.matmul import matmul, passes
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.tensor import HbmTensor
from neuroncore_rtl.run.check.tiles import count_differences
from neuroncore_rtl.run.core import check_room, core_options, hbm_cycles, hbm_of, roofline, summary
from neuroncore_rtl.run.execution import execute
from neuroncore_rtl.run.harness.engines.tensor import COUNTERS, TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.run.images import ImageTask
from neuroncore_rtl.run.modelled import modelled_report, predicted
from neuroncore_rtl.run.profiled import profile_lines, refuse_profile
from neuroncore_rtl.run.report import Report, progress, shown
from neuroncore_rtl.run.settings import Command, Settings, dtype_option, integer, refusals
from neuroncore_rtl.run.view.waves import waveform, write_save_file
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, MATMUL_FORMATS, Format, format_named
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.tensor_tiling import tiled_products

__all__ = [
    "TEST", "ideal_cycles", "multiply", "multiply_recorded", "product_image", "product_program", "random_matrix",
]  # fmt: skip


MOST_INSTRUCTIONS = 1 << 19
"""Of the tensor engine in an image: about a minute of planning and 64 MiB of records."""


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
    device: TensorDevice | None = None,
) -> tuple[np.ndarray, dict[str, int]]:
    """Return A x B as the RTL computes it, uint32 of shape [M, N] (FP32, or INT32 for INT8), and the counters' sums.

    Arguments:
        a, b: storage words of `fmt`, of shapes [M, K] and [K, N].
        fmt, config: number format and machine.
        sim: the simulator.
        stall, seed: see `run.harness.engines.tensor.TensorWork`.
        waves: where to record a waveform, of the first program if there are several.
        waves_levels: see `run.sim.simulation.run`.
        device: a tensor engine of that configuration; None: as its Verilog is.
    """
    device = device or TensorDevice(config=config)
    result = np.zeros((a.shape[0], b.shape[1]), np.uint32)
    totals = dict.fromkeys(COUNTERS, 0)
    for number, program in enumerate(tiled_products(a, b, fmt, config)):
        work = TensorWork(program=program, stall=stall, seed=seed)
        recorded = {"waves": waves if number == 0 else None, "waves_levels": waves_levels}
        doing = f"running {len(program.steps):,} instructions"
        outcome = run(device, work, sim=sim, doing=doing, **recorded)
        program.gather(outcome.memories["psum"], result)
        for name in COUNTERS:
            totals[name] += outcome.counters[name]
    return result, totals


def product_image(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, order: str = Program.order
) -> tuple[Image, HbmTensor]:
    """Return the image that multiplies on the core, and where in HBM the product will be.

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
    _check_instructions(m, k, n, fmt, config)
    matmul(program, product, left, right)
    return program, product, left, right


def _check_instructions(m: int, k: int, n: int, fmt: Format, config: Config) -> None:
    tiles = -(-m // config.columns) * -(-k // config.rows) * -(-n // config.psum_words)
    instructions = 2 * len(passes(fmt)) * tiles
    if instructions > MOST_INSTRUCTIONS:
        raise ValueError(
            f"a product must take at most {MOST_INSTRUCTIONS:,} instructions of the tensor engine, two for each of its "
            f"tiles of {config.columns} x {config.rows} x {config.psum_words}, not {instructions:,}: smaller M, K or "
            "N, or a larger array, make them fewer"
        )


def multiply_recorded(
    a: np.ndarray, b: np.ndarray, fmt: Format, settings: Settings, waves: Path | None
) -> tuple[np.ndarray, dict[str, int], dict[str, str]]:
    """Return what `multiply` does, and for a report the waveform, if WAVES asks for one.

    Arguments:
        a, b, fmt: see `multiply`.
        settings: with the options of `core_options`.
        waves: where the waveform is recorded; None: nowhere.
    """
    refuse_profile(settings)
    waves = waves if settings.waves else None
    options = {"sim": settings.sim, "stall": settings.stall, "seed": settings.seed, "waves_levels": settings.depth}
    result, counters = multiply(a, b, fmt, settings.config, waves=waves, **options)
    return result, counters, {"waveform": shown(write_save_file(waves))} if waves else {}


def _run(settings: Settings) -> Report:
    config, fmt = settings.config, format_named(settings.dtype)
    m, k, n = settings.m, settings.k, settings.n
    if settings.target == "model":
        return _on_model(settings)
    check_room((m * k + k * n) * fmt.bits // 8 + 4 * m * n)
    if settings.target == "core":
        with refusals():
            _check_instructions(m, k, n, fmt, config)
    rng = np.random.default_rng(settings.seed)
    a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
    label = f"{settings.preset}-{config.rows}x{config.columns}-{fmt.name}-{m}x{k}x{n}-{settings.sim}"
    on_target = {"core": _on_core, "engine": _on_engine}[settings.target]
    result, extra, measured = on_target(settings, a, b, fmt, label)
    # The image on golden is one truth, the product as an equation another: it knows nothing of tiles and copies.
    with progress("golden product"):
        expected = golden.matrix_product(a, b, fmt, config.rows)
    measured["compared"] += expected.size
    again = f"{TEST.command(settings, WAVES=1)}, then make waves TEST=matmul"
    measured["mismatches"] += count_differences(result, expected, fmt is INT8, config.columns, again)
    return Report(
        test="matmul",
        settings=dict(settings.values),
        ideal_cycles=ideal_cycles(m, k, n, fmt, config),
        extra={"shape": f"[{m}, {k}] x [{k}, {n}] {fmt.name} on {config.rows} x {config.columns}", **extra},
        **measured,
    )


Product = tuple[np.ndarray, dict[str, object], dict[str, object]]
"""A product, uint32 of shape [M, N], what the report says of it, and the report's other fields by name."""


def _on_core(settings: Settings, a: np.ndarray, b: np.ndarray, fmt: Format, label: str) -> Product:
    config = settings.config
    image, product = product_image(a, b, fmt, config, settings.order)
    profiled = bool(settings.profile)
    task = ImageTask(machine=config, images=[image], behaviour=hbm_of(settings), profiled=profiled)
    done = execute(task, settings, f"core-matmul-{label}", pictures=f"matmul-{label}")
    ideal, moved = ideal_cycles(*a.shape, b.shape[1], fmt, config), (a.size + b.size) * fmt.bits // 8 + 4 * product.size
    extra = {
        "roofline": roofline("array", ideal, moved, config, settings.bandwidth),
        "config": config.named,
        **summary(done.outcome.parts[0], config),
        **done.files,
        **profile_lines(settings, f"matmul-{label}", image, done.outcome.parts[0]),
    }
    result = np.ascontiguousarray(product.elements(done.outcome.memories["hbm"][0])).view(np.uint32)
    measured = {**done.measured, "label": f"core-{label}", "hbm_cycles": hbm_cycles(moved, config, settings.bandwidth)}
    return result, extra, measured


def _on_model(settings: Settings) -> Report:
    config, fmt = settings.config, format_named(settings.dtype)
    m, k, n = settings.m, settings.k, settings.n
    with progress("making the program"), refusals():
        image = build_image(product_program(m, k, n, fmt, config, settings.order)[0])
    ideal, moved = ideal_cycles(m, k, n, fmt, config), (m * k + k * n) * fmt.bits // 8 + 4 * m * n
    extra = {
        "shape": f"[{m}, {k}] x [{k}, {n}] {fmt.name} on {config.rows} x {config.columns}",
        "roofline": roofline("array", ideal, moved, config, settings.bandwidth),
    }
    label = f"{settings.preset}-{config.rows}x{config.columns}-{fmt.name}-{m}x{k}x{n}"
    found = predicted(image, settings)
    extra |= profile_lines(settings, f"matmul-{label}", image, found)
    hbm = hbm_cycles(moved, config, settings.bandwidth)
    return modelled_report("matmul", label, settings, found, ideal, extra, hbm)


def _on_engine(settings: Settings, a: np.ndarray, b: np.ndarray, fmt: Format, label: str) -> Product:
    result, counters, recorded = multiply_recorded(a, b, fmt, settings, waveform("matmul"))
    extra = {"config": settings.config.named, "counters": counters, **recorded}
    return result, extra, {"label": label, "compared": 0, "mismatches": 0, "cycles": counters["cycles"]}


TEST = Command(
    name="matmul",
    summary="matrix product of any shape, from HBM to HBM on the core or on the tensor engine alone, against golden",
    options=(
        integer("M", 64, "rows of A and C", 1, 1 << 20),
        integer("K", 64, "columns of A, rows of B", 1, 1 << 20),
        integer("N", 64, "columns of B and C", 1, 1 << 20),
        dtype_option(fmt.name for fmt in MATMUL_FORMATS),
        *core_options("core", "the tensor engine", "small"),
    ),
    run=_run,
)
