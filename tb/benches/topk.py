"""TEST=topk: the largest elements of each row and their places."""

import numpy as np

from neuroncore_rtl.kernels.library.topk import rounded_up, topk
from neuroncore_rtl.kernels.program.rows import place_rows
from neuroncore_rtl.spec.formats import INT32, format_named
from neuroncore_rtl.tb.benches.kernel import Workbench, kernel_options, refusals
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.sim.settings import Bench, Option, Settings

__all__ = ["BENCH"]

_K = Option(name="K", type=int, default=16, help="elements to find, rounded up to 8", minimum=1, maximum=16384)


def _run(settings: Settings) -> Report:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    rng = np.random.default_rng(settings.seed)
    bench = Workbench(settings.config)
    with refusals():
        x, exact = bench.place("x", rng.normal(0, 3, shape), fmt)
        k = rounded_up(settings.k)
        values = place_rows(bench.space, "values", fmt, settings.m, k)
        indices = place_rows(bench.space, "indices", INT32, settings.m, k)
        topk(bench.program, bench.space, values, indices, x)
    # A stable sort of the negated elements: equal ones stay in the order of their places.
    order = np.argsort(-exact, axis=1, kind="stable")[:, :k]
    used = {"M": settings.m, "N": settings.n, "K": settings.k, "DTYPE": settings.dtype}
    references = {"values": (values, np.take_along_axis(exact, order, 1)), "indices": (indices, order.astype(float))}
    return bench.run("topk", settings, used, references)[0]


BENCH = Bench(
    name="topk",
    summary="the largest K elements of each row and their places, bit for bit and against a sort",
    options=kernel_options(_K),
    run=_run,
)
