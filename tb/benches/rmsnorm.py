"""TEST=rmsnorm: root-mean-square normalisation of the rows of a matrix."""

import numpy as np

from neuroncore_rtl.kernels.library.rmsnorm import rmsnorm
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.tb.benches.kernel import Workbench, kernel_options, refusals
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.sim.settings import Bench, Settings

__all__ = ["BENCH"]

EPSILON = 1e-5


def _run(settings: Settings) -> Report:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    rng = np.random.default_rng(settings.seed)
    bench = Workbench(settings.config)
    with refusals():
        x, exact = bench.place("x", rng.normal(0, 2, shape), fmt)
        gamma, gains = bench.replicate("gamma", rng.normal(1, 0.1, settings.n), settings.m)
        y, _ = bench.place("y", np.zeros(shape), fmt)
        rmsnorm(bench.program, bench.space, y, x, gamma, EPSILON)
    reference = exact / np.sqrt(np.mean(exact**2, 1, keepdims=True) + EPSILON) * gains
    used = {"M": settings.m, "N": settings.n, "DTYPE": settings.dtype}
    return bench.run("rmsnorm", settings, used, {"y": (y, reference)})[0]


BENCH = Bench(
    name="rmsnorm",
    summary="root-mean-square normalisation of the rows of a matrix, bit for bit and against float64",
    options=kernel_options(),
    run=_run,
)
