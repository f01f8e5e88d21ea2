"""TEST=gelu: the Gaussian error linear unit, forward and backward."""

import math

import numpy as np

from neuroncore_rtl.kernels.library.gelu import gelu
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.tb.benches.kernel import Workbench, kernel_options, refusals
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.sim.settings import Bench, Option, Settings

__all__ = ["BENCH"]

_FUNC = Option(name="FUNC", type=str, default="gelu", help="which form", choices=("gelu", "gelu_tanh"))


def _reference(x: np.ndarray, function: str) -> tuple[np.ndarray, np.ndarray]:
    """Return gelu(x) and its derivative in float64."""
    if function == "gelu":
        gate, density = (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2, np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        return x * gate, gate + x * density
    slope = np.sqrt(2 / np.pi)
    t = np.tanh(slope * (x + 0.044715 * x**3))
    return x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) / 2 * slope * (1 + 3 * 0.044715 * x * x)


def _run(settings: Settings) -> Report:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    rng = np.random.default_rng(settings.seed)
    bench = Workbench(settings.config)
    with refusals():
        x, exact = bench.place("x", rng.normal(0, 2, shape), fmt)
        dy, slopes = bench.place("dy", rng.normal(0, 1, shape), fmt)
        y, _ = bench.place("y", np.zeros(shape), fmt)
        dx, _ = bench.place("dx", np.zeros(shape), fmt)
        gelu(bench.program, bench.space, y, dx, x, dy, settings.func)
    value, derivative = _reference(exact, settings.func)
    used = {"M": settings.m, "N": settings.n, "DTYPE": settings.dtype, "FUNC": settings.func}
    return bench.run("gelu", settings, used, {"y": (y, value), "dx": (dx, derivative * slopes)})[0]


BENCH = Bench(
    name="gelu",
    summary="the Gaussian error linear unit and its gradient, both forms, bit for bit and against float64",
    options=kernel_options(_FUNC),
    run=_run,
)
