# amaranth: UnusedElaboratable=no

"""Playable function units for the tests of the activation lanes, and their arguments."""

from collections.abc import Iterable
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
from amaranth import Module, Signal
from amaranth.lib import data, wiring

from neuroncore_rtl.golden.scalar.functions import activate
from neuroncore_rtl.hdl.scalar.function import FunctionUnit
from neuroncore_rtl.hdl.scalar.number import decode_number
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, FunctionTables
from neuroncore_rtl.run.harness.player import Playable
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import FUNCTIONS, Tables, load_tables
from neuroncore_rtl.spec.functions.layout import CONTROL_FIELDS, HIGH_EXPONENT, LOW_EXPONENT, control_address
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.one_bit import ONE, lone_factors
from tests.hdl.simulation import assign

__all__ = [
    "ALPHAS", "STAGED", "UNIT", "argument_cases", "border_arguments", "cases_of", "close_calls", "halfway_products",
    "near_quarter_turns", "results",
]  # fmt: skip

ALPHAS = np.uint32([
    0x3C23D70A, 0xBF000000, 0x40490FDB, 0x00000001, 0x80000001, 0x7F7FFFFF, 0x00000000, 0x80000000, 0x7F800000,
    0xFF800000, 0xFFC00001, 0x7FA00000,
])  # fmt: skip
"""FP32 parameters: ordinary ones, subnormals, the largest, zeros, infinities, NaNs."""

CANDIDATES = 200_000
"""Number of random arguments of each function among which `close_calls` searches."""


class PlayedFunction(Playable):
    """`FunctionUnit` with the same parameters; its input word consists of function, z, and alpha as an FP32 word."""

    def __init__(self, staged: bool = False, trigonometry: bool = True):
        self.parameters = staged, trigonometry
        super().__init__(
            data.StructLayout({"function": FUNCTION_BITS, "z": 32, "alpha": 32}), FunctionUnit.latency_of(staged)
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.tables = tables = FunctionTables(1)
        m.submodules.unit = unit = FunctionUnit(*self.parameters)
        wiring.connect(m, unit.tables, tables.readers[0])
        alpha = self.word.alpha
        for cycle in range(unit.alpha_delay):
            late = Signal(32, name=f"alpha_{cycle}")
            m.d.sync += late.eq(alpha)
            alpha = late
        assign(m, unit, z=self.word.z, function=self.word.function, alpha=decode_number(m, alpha, "alpha"))
        assign(m, self, result=unit.y)
        self.delay_valid(m)
        return m


UNIT = PlayedFunction()
STAGED = {trigonometry: PlayedFunction(True, trigonometry) for trigonometry in (True, False)}
"""The pipelined unit, with and without quarter turns."""


def border_arguments(name: str) -> np.ndarray:
    """Return FP32 words of both signs around every border between two segments of a function."""
    positions = {field: place for place, field in enumerate(CONTROL_FIELDS)}
    control, function = load_tables().control, FUNCTIONS[name]
    borders = []
    for negative in (0, 1):
        for exponent in range(LOW_EXPONENT, HIGH_EXPONENT + 2):
            row = exponent & 1 if function.parity else min(exponent, HIGH_EXPONENT) - LOW_EXPONENT
            count = 1 << control[control_address(function.code, negative, row)][positions["bits"]]
            values = np.ldexp(1 + np.arange(count) / count, exponent).astype(np.float32).view(np.uint32)
            borders.append(values | np.uint32(negative << 31))
            if exponent == LOW_EXPONENT:  # the row that reaches down to zero
                low = (np.arange(1, count) / count * 2.0 ** (LOW_EXPONENT + 1)).astype(np.float32).view(np.uint32)
                borders.append(low | np.uint32(negative << 31))
    return (np.concatenate(borders)[:, np.newaxis] + np.arange(-2, 3).astype(np.uint32)).ravel()


def near_quarter_turns() -> np.ndarray:
    """Return FP32 words of both signs that are closest to multiples of pi / 2 in each binade.

    Their sines and cosines depend on the last bits of a long product. m * 2**k is close to a multiple of pi / 2 if m is
    the denominator of a fraction close to 2**k * 2 / pi, or a small multiple of this denominator.
    """
    with mpmath.workprec(400):
        turns = Fraction(int(mpmath.ldexp(2 / mpmath.pi, 350)), 1 << 350)
    words = []
    for exponent in range(FP32.bias + 1):
        closest = (turns * Fraction(2) ** (exponent - FP32.precision + 1)).limit_denominator((1 << FP32.precision) - 1)
        first = -(-(1 << FP32.precision - 1) // closest.denominator)
        for significand in range(first * closest.denominator, 1 << FP32.precision, closest.denominator)[:4]:
            words.append(exponent + FP32.bias << FP32.precision - 1 | significand & ~(1 << FP32.precision - 1))
    return np.array([word | sign << 31 for word in words for sign in (0, 1)], np.uint32)


@cache
def halfway_products() -> dict[str, np.ndarray]:
    """Return leaky_relu cases with exact results halfway between two FP32 numbers, or one bit off.

    Results are normal, or subnormal with each possible number of significand bits.
    """
    numbers, alphas = [], []
    for dropped in range(1, FP32.precision - 1):  # bits below the least number, 2**-149
        for low in (0, *(1 << bit for bit in range(dropped - 1))):
            numbers += [ONE | odd << dropped | 1 << dropped - 1 | low for odd in (0, 1)]
            alphas += 2 * [1 << FP32.precision - 1 - dropped]
    a, b = lone_factors()
    parts = [(a, b), (np.array(numbers, np.uint32), np.array(alphas, np.uint32))]
    return cases_of(("leaky_relu", z | np.uint32(1 << 31), alpha) for z, alpha in parts)


@cache
def close_calls(count: int) -> dict[str, np.ndarray]:
    """Return cases of every function, at most `count` each, that are nearly halfway between two results.

    Golden's result changes if the constants of all segments change by one.
    """
    rng, tables = np.random.default_rng(20261125), load_tables()
    moved = [
        Tables(*(tuple((row[0] + by, *row[1:]) for row in rows) for rows in (tables.segments, tables.exp2)), control)
        for by, control in ((1, tables.control), (-1, tables.control))
    ]
    parts = []
    for name in FUNCTIONS:
        z = (rng.standard_normal(CANDIDATES) * np.exp2(rng.uniform(-8, 8, CANDIDATES))).astype(np.float32)
        sound, *others = (activate(name, z, tables=of).view(np.uint32) for of in (tables, *moved))
        close = z[(sound != others[0]) | (sound != others[1])][:count].view(np.uint32)
        parts.append((name, close, 0))
    return cases_of(parts)


def cases_of(parts: Iterable[tuple]) -> dict[str, np.ndarray]:
    columns = zip(*(np.broadcast_arrays(FUNCTIONS[name].code, *words) for name, *words in parts), strict=True)
    function, z, alpha = (np.concatenate(column).astype(np.uint32) for column in columns)
    return {"function": function, "z": z, "alpha": alpha}


def argument_cases(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Return `count` cases of every function in random order: special arguments, segment borders, random ones."""
    parts = []
    for name in FUNCTIONS:
        special = stimulus.special_fp32()
        borders = rng.permutation(border_arguments(name))[: count // 3]
        ordinary = rng.standard_normal(count) * np.exp2(rng.uniform(-8, 8, count))
        anything = stimulus.random_fp32(rng, count)
        mixed = np.where(rng.random(count) < 0.6, stimulus.fp32_bits(ordinary), anything)
        z = np.concatenate([special, borders, mixed])[: max(count, len(special))]
        parts.append((name, z, rng.choice(ALPHAS, len(z))))
    cases = cases_of(parts)
    order = rng.permutation(len(cases["z"]))
    return {name: column[order] for name, column in cases.items()}


def results(function: np.ndarray, z: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    expected = np.zeros(len(z), np.uint32)
    for name, described in FUNCTIONS.items():
        for word in np.unique(alpha) if described.has_alpha else alpha[:1]:
            chosen = (function == described.code) & ((alpha == word) | (not described.has_alpha))
            expected[chosen] = activate(name, z[chosen].view(np.float32), word.view(np.float32)).view(np.uint32)
    return expected
