"""What the tests of the activation lanes share: function units that can be played, and arguments worth trying."""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from amaranth import Module, Signal
from amaranth.lib import data, wiring

from neuroncore_rtl.golden.scalar.functions import activate
from neuroncore_rtl.hdl.scalar.function import FunctionUnit
from neuroncore_rtl.hdl.scalar.number import decode
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, FunctionTables
from neuroncore_rtl.spec.functions import FUNCTIONS, load
from neuroncore_rtl.spec.functions.layout import CONTROL_FIELDS, HIGH_EXPONENT, LOW_EXPONENT, control_address
from neuroncore_rtl.tb.harness.player import Playable, PlayerDevice, PlayerWork
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.stimulus import operands as stimulus

__all__ = ["ALPHAS", "PlayedFunction", "argument_cases", "border_arguments", "differences", "results"]

ALPHAS = np.array(
    [
        0x3C23D70A, 0xBF000000, 0x40490FDB, 0x00000001, 0x80000001, 0x7F7FFFFF, 0x00000000, 0x80000000, 0x7F800000,
        0xFF800000, 0xFFC00001,
    ],
    np.uint32,
)  # fmt: skip
"""Parameters, FP32: ordinary ones, subnormals, the largest, zeros, infinities, a NaN."""


class PlayedFunction(Playable):
    """:class:`FunctionUnit` with its inputs in one word: function, z, and alpha as an FP32 word."""

    LAYOUT = data.StructLayout({"function": FUNCTION_BITS, "z": 32, "alpha": 32})

    def __init__(self):
        super().__init__(self.LAYOUT, FunctionUnit.LATENCY)

    def elaborate(self, platform):
        m = Module()
        m.submodules.tables = tables = FunctionTables(1)
        m.submodules.unit = unit = FunctionUnit()
        wiring.connect(m, unit.tables, tables.readers[0])
        alpha = self.word.alpha
        for cycle in range(unit.ALPHA_DELAY):
            late = Signal(32, name=f"alpha_{cycle}")
            m.d.sync += late.eq(alpha)
            alpha = late
        m.d.comb += [
            unit.z.eq(self.word.z),
            unit.function.eq(self.word.function),
            unit.alpha.eq(decode(m, alpha, "alpha")),
            self.result.eq(unit.y),
        ]
        self.delay_valid(m)
        return m


def border_arguments(name: str) -> np.ndarray:
    """Return FP32 words of both signs around every border between two segments of a function."""
    places = {field: place for place, field in enumerate(CONTROL_FIELDS)}
    control, function = load().control, FUNCTIONS[name]
    borders = []
    for negative in (0, 1):
        for exponent in range(LOW_EXPONENT, HIGH_EXPONENT + 2):
            row = exponent & 1 if function.parity else min(exponent, HIGH_EXPONENT) - LOW_EXPONENT
            count = 1 << control[control_address(function.code, negative, row)][places["bits"]]
            values = np.ldexp(1 + np.arange(count) / count, exponent).astype(np.float32).view(np.uint32)
            borders.append(values | np.uint32(negative << 31))
            if exponent == LOW_EXPONENT:  # the row that reaches down to zero
                low = (np.arange(1, count) / count * 2.0 ** (LOW_EXPONENT + 1)).astype(np.float32).view(np.uint32)
                borders.append(low | np.uint32(negative << 31))
    return (np.concatenate(borders)[:, np.newaxis] + np.arange(-2, 3).astype(np.uint32)).ravel()


def argument_cases(rng: np.random.Generator, names: Iterable[str], count: int) -> dict[str, np.ndarray]:
    """Return cases of :class:`PlayedFunction` in random order.

    Arguments:
        rng: the generator.
        names: of functions.
        count: of arguments of each function: special ones, segment borders, then random ones.
    """
    parts = []
    for name in names:
        special = stimulus.special_fp32()
        borders = rng.permutation(border_arguments(name))[: count // 3]
        ordinary = rng.standard_normal(count) * np.exp2(rng.uniform(-8, 8, count))
        anything = stimulus.random_fp32(rng, count)
        mixed = np.where(rng.random(count) < 0.6, ordinary.astype(np.float32).view(np.uint32), anything)
        z = np.concatenate([special, borders, mixed])[: max(count, len(special))]
        parts.append((np.full(len(z), FUNCTIONS[name].code, np.uint32), z, rng.choice(ALPHAS, len(z))))
    function, z, alpha = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = rng.permutation(len(z))
    return {"function": function[order], "z": z[order], "alpha": alpha[order]}


def results(function: np.ndarray, z: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return what golden makes of cases, as FP32 words."""
    expected = np.zeros(len(z), np.uint32)
    names = list(FUNCTIONS)
    for code in np.unique(function):
        chosen_alphas = ALPHAS if FUNCTIONS[names[code]].has_alpha else [None]
        for word in chosen_alphas:
            chosen = (function == code) & (True if word is None else alpha == word)
            value = np.float32(0) if word is None else word.view(np.float32)
            expected[chosen] = activate(names[code], z[chosen].view(np.float32), value).view(np.uint32)
    return expected


@cache
def _device(mutate: Callable | None = None) -> PlayerDevice:
    return PlayerDevice(PlayedFunction(), mutate)


def differences(cases: dict[str, np.ndarray], expected: np.ndarray, sim: str, mutate: Callable | None = None):
    """Return the numbers of the cases whose result is not the expected one; fail if a result is missing or unknown.

    Arguments:
        cases: fields of :class:`PlayedFunction`.
        expected: FP32 words.
        sim: the simulator.
        mutate: a function from the Verilog to another.
    """
    memories = run(_device(mutate), PlayerWork(fields=cases, bubbles=True), sim=sim).memories
    found = memories["results"]
    assert len(found) == len(expected) > 0
    assert not len(memories["unknown"])
    return np.flatnonzero(found != expected)
