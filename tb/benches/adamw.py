"""TEST=adamw: steps of the AdamW optimiser, parameters rounded as the user asks."""

import numpy as np

from neuroncore_rtl.kernels.library.adamw import AdamW, adamw
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.tb.benches.kernel import Workbench, kernel_options, refusals
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.sim.settings import Bench, Option, Settings

__all__ = ["BENCH"]

_STEPS = Option(name="STEPS", type=int, default=3, help="steps of the optimiser", minimum=1, maximum=100)
_ROUND = Option(name="ROUND", type=str, default="sr", help="rounding of the parameters", choices=("rne", "sr"))


def _run(settings: Settings) -> Report:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    rng = np.random.default_rng(settings.seed)
    options = AdamW()
    bench = Workbench(settings.config)
    with refusals():
        p, exact = bench.place("parameters", rng.normal(0, 0.1, shape), fmt)
        m, first = bench.place("first moment", np.zeros(shape))
        v, second = bench.place("second moment", np.zeros(shape))
        steps = range(1, settings.steps + 1)
        gradients = [bench.place(f"gradient {step}", rng.normal(0, 0.01, shape), fmt) for step in steps]
        for step, (g, slopes) in zip(steps, gradients, strict=True):
            draws = p.draws(settings.seed, step) if settings.round == "sr" else None
            with bench.space.scope():
                adamw(bench.program, bench.space, p, g, m, v, step, options, draws)
            first = options.beta1 * first + (1 - options.beta1) * slopes
            second = options.beta2 * second + (1 - options.beta2) * slopes**2
            root = np.sqrt(second / (1 - options.beta2**step)) + options.epsilon
            pace = options.rate / (1 - options.beta1**step)
            exact = (1 - options.rate * options.decay) * exact - pace * first / root
    used = {"M": settings.m, "N": settings.n, "DTYPE": settings.dtype, "STEPS": settings.steps, "ROUND": settings.round}
    results = {"parameters": (p, exact), "first_moment": (m, first), "second_moment": (v, second)}
    return bench.run("adamw", settings, used, results)[0]


BENCH = Bench(
    name="adamw",
    summary="steps of AdamW with stochastic or nearest rounding of the parameters, bit for bit and against float64",
    options=kernel_options(_STEPS, _ROUND),
    run=_run,
)
