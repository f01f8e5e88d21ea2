"""TESTs of kernels on rows; TARGET=engine, the vector and scalar engines only, builds faster than a core."""

from functools import partial

import numpy as np

from neuroncore_rtl.kernels.library.gelu import gelu
from neuroncore_rtl.kernels.library.layernorm import layernorm
from neuroncore_rtl.kernels.library.rmsnorm import rmsnorm
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.library.topk import rounded_up, topk
from neuroncore_rtl.kernels.training.adamw import AdamW, adamw
from neuroncore_rtl.kernels.training.crossentropy import crossentropy
from neuroncore_rtl.kernels.training.softmax_backward import softmax_backward
from neuroncore_rtl.run.settings import Option, Settings, choice, core_options, dtype_option, integer
from neuroncore_rtl.spec.formats import INT32, format_named
from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.kernels.derivatives import EPSILON
from neuroncore_rtl.tb.tests.kernels.workbench import KernelBuild, KernelScenario, References, Workbench

__all__ = ["TESTS"]

FLOATS = ("fp32", "tf32", "bf16", "fp16")
ROWS = integer("M", 40, "rows of the matrix, one partition each", 1, 65536)
COLUMNS = integer("N", 96, "columns of the matrix", 1, 65535)
FORM = choice("FUNC", "gelu", "form of the function", ("gelu", "gelu_tanh"))
ADAMW = (
    integer("STEPS", 3, "steps of the optimiser", 1, 100),
    choice("ROUND", "sr", "rounding of the parameters", ("rne", "sr")),
)
K = integer("K", 16, "elements to find, rounded up to 8", 1, 16384)


def _softmax(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    x, exact = bench.place("x", rng.normal(0, 3, shape), fmt)
    y = bench.room("y", shape, fmt)
    bench.append(softmax, [y], [x])
    return {"y": (y, derivatives.softmax(exact))}


def _softmax_backward(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    y, weights = bench.place("y", derivatives.softmax(rng.normal(0, 3, shape)), fmt)
    dy, slopes = bench.place("dy", rng.normal(0, 1, shape), fmt)
    dx = bench.room("dx", shape, fmt)
    bench.append(softmax_backward, [dx], [y, dy])
    return {"dx": (dx, derivatives.softmax_gradient(weights, slopes))}


def _crossentropy(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, (m, n) = format_named(settings.dtype), (settings.m, settings.n)
    logits, exact = bench.place("logits", rng.normal(0, 3, (m, n)), fmt)
    labels, chosen = bench.place("labels", rng.integers(0, n, (m, 1)), INT32)
    loss, dlogits = bench.room("loss", (m, 1)), bench.room("dlogits", (m, n), fmt)
    bench.append(partial(crossentropy, scale=1 / m), [loss, dlogits], [logits, labels])
    losses, slopes = derivatives.crossentropy(exact, chosen[:, 0].astype(int))
    return {"loss": (loss, losses), "dlogits": (dlogits, slopes / m)}


def _layernorm(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    x, exact = bench.place("x", rng.normal(1, 2, shape), fmt)
    gamma, gains = bench.share("gamma", rng.normal(1, 0.1, settings.n), settings.m)
    beta, shifts = bench.share("beta", rng.normal(0, 0.1, settings.n), settings.m)
    y = bench.room("y", shape, fmt)
    bench.append(partial(layernorm, epsilon=EPSILON), [y], [x], [gamma, beta])
    return {"y": (y, derivatives.layernorm(exact, gains, shifts))}


def _rmsnorm(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    x, exact = bench.place("x", rng.normal(0, 2, shape), fmt)
    gamma, gains = bench.share("gamma", rng.normal(1, 0.1, settings.n), settings.m)
    y = bench.room("y", shape, fmt)
    bench.append(partial(rmsnorm, epsilon=EPSILON), [y], [x], [gamma])
    return {"y": (y, exact / np.sqrt(np.mean(exact**2, 1, keepdims=True) + EPSILON) * gains)}


def _gelu(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    x, exact = bench.place("x", rng.normal(0, 2, shape), fmt)
    dy, slopes = bench.place("dy", rng.normal(0, 1, shape), fmt)
    y, dx = bench.room("y", shape, fmt), bench.room("dx", shape, fmt)
    bench.append(partial(gelu, function=settings.func), [y, dx], [x, dy])
    value, derivative = derivatives.gelu(exact, settings.func)
    return {"y": (y, value), "dx": (dx, derivative * slopes)}


def _adamw(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, shape = format_named(settings.dtype), (settings.m, settings.n)
    options, seed = AdamW(), settings.seed if settings.round == "sr" else None
    p, exact = bench.place("parameters", rng.normal(0, 0.1, shape), fmt)
    m, first = bench.place("first moment", np.zeros(shape))
    v, second = bench.place("second moment", np.zeros(shape))
    steps = range(1, settings.steps + 1)
    gradients = [bench.place(f"gradient {step}", rng.normal(0, 0.01, shape), fmt) for step in steps]
    for step, (g, slopes) in zip(steps, gradients, strict=True):
        bench.append(partial(adamw, step=step, options=options, seed=seed), [p, m, v], [p, m, v, g])
        derivatives.adamw_step(options, step, exact, slopes, first, second)
    return {"parameters": (p, exact), "first_moment": (m, first), "second_moment": (v, second)}


def _topk(bench: Workbench, settings: Settings, rng: np.random.Generator) -> References:
    fmt, k = format_named(settings.dtype), rounded_up(settings.k)
    x, exact = bench.place("x", rng.normal(0, 3, (settings.m, settings.n)), fmt)
    values, indices = bench.room("values", (settings.m, k), fmt), bench.room("indices", (settings.m, k), INT32)
    bench.append(topk, [values, indices], [x])
    # A stable sort of the negated elements: equal ones keep their order.
    order = np.argsort(-exact, axis=1, kind="stable")[:, :k]
    return {"values": (values, np.take_along_axis(exact, order, 1)), "indices": (indices, order.astype(float))}


def _kernel(name: str, build: KernelBuild, what: str, *options: Option, exact: str = "float64") -> KernelScenario:
    common = core_options("engine", "the vector and the scalar engine", "tiny")
    options = (ROWS, COLUMNS, dtype_option(FLOATS), *options, *common)
    return KernelScenario(name=name, summary=f"{what}, bit for bit and against {exact}", options=options, build=build)


TESTS = (
    _kernel("softmax", _softmax, "softmax of the rows of a matrix, any shape, both engines"),
    _kernel("softmax_backward", _softmax_backward, "the gradient of a softmax's input"),
    _kernel("crossentropy", _crossentropy, "the cross entropy of rows of classes, and the gradient of its mean"),
    _kernel("layernorm", _layernorm, "layer normalisation of the rows of a matrix, any shape"),
    _kernel("rmsnorm", _rmsnorm, "root-mean-square normalisation of the rows of a matrix"),
    _kernel("gelu", _gelu, "the Gaussian error linear unit and its gradient, both forms", FORM),
    _kernel("adamw", _adamw, "steps of AdamW with stochastic or nearest rounding of the parameters", *ADAMW),
    _kernel("topk", _topk, "the largest K elements of each row and their indices", K, exact="a sort"),
)
"""Each row has name, build function, description, and variables of this TEST only."""
