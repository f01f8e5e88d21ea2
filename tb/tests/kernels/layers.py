"""TESTs of network layers: each runs from HBM to HBM on the core and is compared with float64."""

from collections.abc import Callable

import numpy as np

from neuroncore_rtl.kernels.library.conv2d import ConvWindow, conv2d
from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.rope import angles, rope
from neuroncore_rtl.kernels.library.swiglu import swiglu_t
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.program import dma_copy
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.run.settings import TILE_OPTION, Option, Settings, choice, core_options, integer
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench, KernelBuild, KernelScenario, References

__all__ = ["TESTS", "layer_test", "sizes"]

FUNCTIONS = {"identity": lambda z: z, "relu": lambda z: np.maximum(z, 0), "gelu": lambda z: derivatives.gelu(z)[0]}


def layer_test(what: str, *options: Option, preset: str = "small") -> Callable[[KernelBuild], KernelScenario]:
    """Return a decorator that makes a TEST on the core of the function that builds a layer."""
    options = (*options, TILE_OPTION, *core_options("core", None, preset))
    summary = f"{what}, bit for bit and against float64"
    return lambda build: KernelScenario(name=build.__name__[1:], summary=summary, options=options, build=build)


def sizes(**known: tuple[int, str]) -> tuple[Option, ...]:
    """Return a variable for each keyword, a size's name with its default and meaning."""
    return tuple(integer(name, default, what, 1, 65536) for name, (default, what) in known.items())


LAYOUT = "y by tokens, without a function, or by features, [N, M], the layout of the next layer's input"


@layer_test(
    "a linear layer of any size, bias and function fused",
    *sizes(M=(40, "tokens"), K=(96, "features of a token"), N=(72, "features of the result")),
    choice("FUNC", "gelu", "function at the end of the layer, with y by features", tuple(FUNCTIONS)),
    choice("LAYOUT", "features", LAYOUT, ("features", "rows")),
)
def _linear(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    m, k, n, program = settings.m, settings.k, settings.n, bench.program
    x, tokens = bench.place("x", rng.normal(size=(m, k)), BF16)
    w, weights = bench.place("w", rng.normal(size=(k, n)) / np.sqrt(k), BF16)
    bias, shifts = bench.share("bias", rng.normal(size=n), m, FP32)
    y = bench.room("y", (m, n) if settings.layout == "rows" else (n, m), BF16)
    x_t = transpose(program, load(program, x), identity(program, BF16))
    exact = tokens @ weights + shifts
    if settings.layout == "rows":
        store(program, y, linear(program, x_t, w, bias))
        return {"y": (y, exact)}
    store(program, y, linear_t(program, w, x_t, bias, settings.func))
    return {"y": (y, FUNCTIONS[settings.func](exact).T)}


@layer_test(
    "two-dimensional convolution of images, bias and function fused",
    integer("IMAGES", 2, "number of images", 1, 64),
    integer("CHANNELS", 8, "channels of an image", 1, 4096),
    integer("HEIGHT", 12, "height of an image", 1, 512),
    integer("WIDTH", 12, "width of an image", 1, 512),
    integer("N", 16, "channels of the result", 1, 4096),
    integer("FILTER", 3, "height and width of the filter", 1, 64),
    integer("STRIDE", 1, "pixels from one position of the filter to the next", 1, 64),
    integer("PADDING", 1, "rows and columns of zeros around an image", 0, 64),
    choice("FUNC", "relu", "function at the end of the layer", tuple(FUNCTIONS)),
)
def _conv2d(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    count, channels, program = settings.images, settings.channels, bench.program
    shape, size, outputs = (channels, settings.height, settings.width), settings.filter, settings.n
    window = ConvWindow(stride=(settings.stride,) * 2, padding=(settings.padding,) * 2)
    w, weights = bench.place("w", rng.normal(size=(size, size, channels, outputs)) / (size * channels**0.5), BF16)
    bias, shifts = bench.share("bias", rng.normal(size=outputs), count, FP32)
    y = bench.room("y", (count, outputs, *window.places(shape[1:], (size, size))), BF16)
    expected = []
    for number in range(count):
        x, image = bench.place(f"x{number}", rng.normal(size=shape), BF16)
        found = conv2d(program, x, w, bias, window, settings.func)
        for part, tile in zip(found.parts, found.tiles, strict=True):
            program.append(dma_copy(y[number, part], tile), next(program.stores))
        expected.append(FUNCTIONS[settings.func](_correlation(image, weights, window) + shifts[:, None, None]))
    return {"y": (y, np.stack(expected))}


@layer_test(
    "the gated layer of large language models: two products, their combination, and a third product",
    *sizes(M=(40, "tokens"), K=(64, "features of a token"), N=(176, "hidden features")),
)
def _swiglu(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    (m, k, n), program = (settings.m, settings.k, settings.n), bench.program
    x, tokens = bench.place("x", rng.normal(size=(m, k)), BF16)
    placed = [bench.place(name, rng.normal(size=(k, n)) / np.sqrt(k), BF16) for name in ("gate", "up")]
    down, back = bench.place("down", rng.normal(size=(n, k)) / np.sqrt(n), BF16)
    (gate, gates), (up, ups) = placed
    y = bench.room("y", (m, k), BF16)
    x_t = transpose(program, load(program, x), identity(program, BF16))
    store(program, y, linear(program, swiglu_t(program, gate, up, x_t), down))
    opened = tokens @ gates
    return {"y": (y, opened / (1 + np.exp(-opened)) * (tokens @ ups) @ back)}


@layer_test(
    "rotary position embedding of the heads of tokens",
    *sizes(SEQ=(40, "tokens")),
    integer("HEADS", 4, "heads of a token", 1, 1024),
    integer("DIM", 32, "features of a head, an even number", 2, 4096),
)
def _rope(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    tokens, heads, width, program = settings.seq, settings.heads, settings.dim, bench.program
    x, values = bench.place("x", rng.normal(size=(tokens, heads * width)), BF16)
    turns = angles(tokens, width)
    (cosines, cos), (sines, sin) = (
        bench.place(name, table, FP32) for name, table in (("cosines", np.cos(turns)), ("sines", np.sin(turns)))
    )
    y = bench.room("y", x.shape, BF16)
    store(program, y, rope(program, *(load(program, matrix) for matrix in (x, cosines, sines))))
    first, second = values.reshape(tokens, heads, 2, -1).swapaxes(0, 2).swapaxes(1, 2)
    turned = np.stack((first * cos[:, None] - second * sin[:, None], second * cos[:, None] + first * sin[:, None]), 2)
    return {"y": (y, turned.reshape(x.shape))}


def _correlation(image: np.ndarray, weights: np.ndarray, window: ConvWindow) -> np.ndarray:
    padded = np.pad(image, [(0, 0), *((more, more) for more in window.padding)])
    places = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[:2], (1, 2))
    down, across = window.stride
    return np.einsum("chwyx,yxco->ohw", places[:, ::down, ::across], weights, optimize=True)


TESTS = (_linear, _swiglu, _rope, _conv2d)
