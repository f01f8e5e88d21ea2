"""TEST=softmax: softmax of the rows of a matrix on both engines."""

import numpy as np

from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.tb.benches.kernel import Workbench, kernel_options, refusals
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.sim.settings import Bench, Settings

__all__ = ["BENCH"]


def _run(settings: Settings) -> Report:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    rng = np.random.default_rng(settings.seed)
    bench = Workbench(settings.config)
    with refusals():
        x, exact = bench.place("x", rng.normal(0, 3, shape), fmt)
        y, _ = bench.place("y", np.zeros(shape), fmt)
        softmax(bench.program, bench.space, y, x)
    powers = np.exp(exact - exact.max(1, keepdims=True))
    reference = powers / powers.sum(1, keepdims=True)
    used = {"M": settings.m, "N": settings.n, "DTYPE": settings.dtype}
    return bench.run("softmax", settings, used, {"y": (y, reference)})[0]


BENCH = Bench(
    name="softmax",
    summary="softmax of the rows of a matrix, any shape, both engines, bit for bit and against float64",
    options=kernel_options(),
    run=_run,
)
