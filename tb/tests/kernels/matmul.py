"""TEST=matmul: a matrix product of any shape, every element against golden, bit for bit."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.kernels.program.image import build_image
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.result import Result, hbm_cycles, roofline
from neuroncore_rtl.run.settings import Settings, check_room, core_options, dtype_option, integer, refusals
from neuroncore_rtl.run.wrong_tile import count_differences
from neuroncore_rtl.spec.formats import INT8, MATMUL_FORMATS, format_named
from neuroncore_rtl.tb.tests.kernels import products
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST"]


def _operands(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    rng, fmt = np.random.default_rng(settings.seed), format_named(settings.dtype)
    a = products.random_matrix(rng, fmt, settings.m, settings.k)
    return a, products.random_matrix(rng, fmt, settings.k, settings.n)


def _moved(settings: Settings) -> int:
    m, k, n = settings.m, settings.k, settings.n
    return (m * k + k * n) * format_named(settings.dtype).bits // 8 + 4 * m * n


def _jobs(settings: Settings) -> Jobs:
    config, fmt = settings.config, format_named(settings.dtype)
    shape = settings.m, settings.k, settings.n
    if settings.target == "model":
        with progress("making the program"), refusals():
            image = build_image(products.product_program(*shape, fmt, config, settings.order)[0])
        yield ImageJob(name="", machine=config, images=[image], computes=False)
        return
    check_room(_moved(settings))
    if settings.target == "engine":
        disturbed = {"stall": settings.stall, "seed": settings.seed}
        yield from products.product_jobs(*_operands(settings), fmt, config, name="", **disturbed)
        return
    with refusals():
        products.check_instructions(*shape, fmt, config)
    image, product = products.product_image(*_operands(settings), fmt, config, settings.order)
    known = {"behaviour": hbm_of(settings), "outputs": [product], "subject": product}
    yield ImageJob(name="", machine=config, images=[image], **known)


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    config, fmt, target = settings.config, format_named(settings.dtype), settings.target
    m, k, n = settings.m, settings.k, settings.n
    ideal, moved = products.ideal_cycles(m, k, n, fmt, config), _moved(settings)
    shape = {"shape": f"[{m}, {k}] x [{k}, {n}] {fmt.name} on {config.rows} x {config.columns}"}
    bound = {"roofline": roofline("array", ideal, moved, config, settings.bandwidth)}
    bounds = {"ideal_cycles": ideal, "hbm_cycles": hbm_cycles(moved, config, settings.bandwidth)}
    bounds["details"] = {"hbm_bytes_moved": moved}
    if target == "model":
        return Report(rows=shape | bound | results[0].rows, **bounds)
    if target == "engine":
        product, counters = products.gathered(results, (m, n)), products.counters_of(results)
        rows = {"config": config.named, "counters": counters, **results[0].files}
        bounds = {"ideal_cycles": ideal, "cycles": counters["cycles"]}
    else:
        product = np.ascontiguousarray(results[0].job.subject.elements(results[0].memory)).view(np.uint32)
        rows = bound | {"config": config.named} | results[0].rows
    # Besides golden's run of the image, the reference is the product as an equation, without tiles and copies.
    with progress("golden product"):
        a, b = _operands(settings)
        expected = golden.matrix_product(a, b, fmt, config.rows)
    again = f"{TEST.command(settings, WAVES=1)}, then make waves TEST=matmul"
    wrong, tile = count_differences(product, expected, fmt is INT8, config.columns, again)
    shown = {"wrong_tile": tile, "product": (a, b, fmt, config)}
    return Report(rows=shape | rows, compared=expected.size, mismatches=wrong, **shown, **bounds)


TEST = Scenario(
    name="matmul",
    summary="matrix product of any shape, on the core or on the tensor engine only, against golden",
    options=(
        integer("M", 64, "rows of A and C", 1, 1 << 20),
        integer("K", 64, "columns of A, rows of B", 1, 1 << 20),
        integer("N", 64, "columns of B and C", 1, 1 << 20),
        dtype_option(fmt.name for fmt in MATMUL_FORMATS),
        *core_options("core", "the tensor engine", "small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
