"""TEST=layernorm: layer normalisation of the rows of a matrix."""

import numpy as np

from neuroncore_rtl.kernels.library.layernorm import layernorm
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
        x, exact = bench.place("x", rng.normal(1, 2, shape), fmt)
        gamma, gains = bench.replicate("gamma", rng.normal(1, 0.1, settings.n), settings.m)
        beta, shifts = bench.replicate("beta", rng.normal(0, 0.1, settings.n), settings.m)
        y, _ = bench.place("y", np.zeros(shape), fmt)
        layernorm(bench.program, bench.space, y, x, gamma, beta, EPSILON)
    centred = exact - exact.mean(1, keepdims=True)
    reference = centred / np.sqrt(np.mean(centred**2, 1, keepdims=True) + EPSILON) * gains + shifts
    used = {"M": settings.m, "N": settings.n, "DTYPE": settings.dtype}
    return bench.run("layernorm", settings, used, {"y": (y, reference)})[0]


BENCH = Bench(
    name="layernorm",
    summary="layer normalisation of the rows of a matrix, any shape, bit for bit and against float64",
    options=kernel_options(),
    run=_run,
)
