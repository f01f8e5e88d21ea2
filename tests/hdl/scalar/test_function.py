# amaranth: UnusedElaboratable=no

"""The activation functions in hardware against golden: every function, and tables and roundings broken on purpose."""

import re

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import FUNCTIONS, load
from neuroncore_rtl.spec.functions.layout import CONTROL_FIELDS, control_address
from tests.hdl.arith.units import faulty_wire
from tests.hdl.scalar.activations import ALPHAS, argument_cases, border_arguments, differences, results

SEED = 20260403
COUNT = {"verilator": 8_000, "icarus": 150}
"""Arguments of each function."""

NAMES = list(FUNCTIONS)


def described(cases, expected, number):
    function, z, alpha = (int(cases[name][number]) for name in ("function", "z", "alpha"))
    return f"{NAMES[function]} z {z:08x} alpha {alpha:08x}: golden {expected[number]:08x}"


def test_every_function_is_that_of_golden(rng, sim):
    cases = argument_cases(rng, NAMES, COUNT[sim])
    expected = results(**cases)
    assert (np.bincount(cases["function"]) >= COUNT[sim]).all()
    finite = expected & 0x7F800000 != 0x7F800000
    subnormal = (expected & 0x7F800000 == 0) & (expected << 1 != 0)
    assert finite.mean() > 0.6 and subnormal.sum() > 10 and (expected == FP32.nan).any()
    wrong = differences(cases, expected, sim)
    assert wrong.size == 0, f"{wrong.size} differ, first {described(cases, expected, wrong[0])}"


def test_every_bf16_argument(rng):
    z = np.arange(1 << 16, dtype=np.uint32) << 16
    names = ("exp", "gelu_tanh", "sin", "rsqrt")
    cases = {
        "function": np.repeat([FUNCTIONS[name].code for name in names], len(z)).astype(np.uint32),
        "z": np.tile(z, len(names)),
        "alpha": np.zeros(len(z) * len(names), np.uint32),
    }
    expected = results(**cases)
    wrong = differences(cases, expected, "verilator")
    assert wrong.size == 0, f"{wrong.size} differ, first {described(cases, expected, wrong[0])}"


def test_borders_of_segments():
    parts = [(FUNCTIONS[name].code, border_arguments(name)) for name in NAMES]
    z = np.concatenate([border for _, border in parts])
    function = np.concatenate([np.full(len(border), code, np.uint32) for code, border in parts])
    cases = {"function": function, "z": z, "alpha": ALPHAS[np.arange(len(z)) % len(ALPHAS)]}
    expected = results(**cases)
    wrong = differences(cases, expected, "verilator")
    assert wrong.size == 0, f"{wrong.size} differ, first {described(cases, expected, wrong[0])}"


@pytest.mark.parametrize(
    ("wire", "expression"),
    [
        pytest.param("pack_up", "1'h0", id="rounded toward zero"),
        pytest.param("pack_shift", "5'h0", id="no subnormals"),
        pytest.param("reduced", "~({})", id="position in the quadrant backwards"),
    ],
)
def test_broken_wire_is_noticed(rng, wire, expression):
    cases = argument_cases(rng, NAMES, 100)
    mutate = faulty_wire(wire, expression)
    wrong = differences(cases, results(**cases), "icarus", mutate)
    assert 0 < wrong.size < len(cases["z"])


@pytest.mark.parametrize(("memory", "bit"), [("c0_exponent", 12), ("c3_c2", 45)])
def test_broken_table_bit_is_noticed(rng, memory, bit):
    control = dict(zip(CONTROL_FIELDS, load().control[control_address(FUNCTIONS["sigmoid"].code, 0, 4)], strict=True))

    def mutate(text):
        """Another bit in the first segment of the sigmoid between 1 and 2."""
        row = rf"(^ +{memory}\[{control['base']}\] = \d+'h)([0-9a-f]+);$"
        changed, count = re.subn(
            row, lambda match: f"{match[1]}{int(match[2], 16) ^ 1 << bit:x};", text, flags=re.MULTILINE
        )
        assert count == 1
        return changed

    code = FUNCTIONS["sigmoid"].code
    z = np.linspace(1, 2, 300, endpoint=False, dtype=np.float32).view(np.uint32)
    cases = {"function": np.full(300, code, np.uint32), "z": z, "alpha": np.zeros(300, np.uint32)}
    expected = results(**cases)
    wrong = differences(cases, expected, "icarus", mutate)
    assert 0 < wrong.size <= -(-300 // (1 << control["bits"])) + 1


KNOWN = {
    "exp(0)": ("exp", 0x00000000, 0, 0x3F800000),
    "exp(-Inf)": ("exp", 0xFF800000, 0, 0x00000000),
    "exp overflows": ("exp", 0x42B20000, 0, 0x7F800000),
    "ln(0)": ("ln", 0x00000000, 0, 0xFF800000),
    "ln(-1)": ("ln", 0xBF800000, 0, FP32.nan),
    "ln(1)": ("ln", 0x3F800000, 0, 0x00000000),
    "sqrt(4)": ("sqrt", 0x40800000, 0, 0x40000000),
    "sqrt(-0)": ("sqrt", 0x80000000, 0, 0x80000000),
    "1 / the smallest": ("reciprocal", 0x00000001, 0, 0x7F800000),
    "(-3)**2": ("square", 0xC0400000, 0, 0x41100000),
    "tanh(-100)": ("tanh", 0xC2C80000, 0, 0xBF800000),
    "subnormal unchanged": ("identity", 0x80000001, 0, 0x80000001),
    "relu(-1)": ("relu", 0xBF800000, 0, 0x00000000),
    "leaky_relu(-2), alpha 1/4": ("leaky_relu", 0xC0000000, 0x3E800000, 0xBF000000),
    "leaky_relu(-2), alpha NaN": ("leaky_relu", 0xC0000000, 0x7FA00000, FP32.nan),
    "-0 * -Inf": ("leaky_relu", 0x80000000, 0xFF800000, FP32.nan),
    "-0 * -1": ("leaky_relu", 0x80000000, 0xBF800000, 0x00000000),
    "-Inf * 1": ("leaky_relu", 0xFF800000, 0x3F800000, 0xFF800000),
    "-Inf * -0": ("leaky_relu", 0xFF800000, 0x80000000, FP32.nan),
    "alpha itself": ("dleaky_relu", 0x00000000, 0x40490FDB, 0x40490FDB),
    "subnormal alpha itself": ("dleaky_relu", 0xFF800000, 0x80000001, 0x80000001),
    "alpha -0": ("dleaky_relu", 0xBF800000, 0x80000000, 0x80000000),
    "sin(Inf)": ("sin", 0x7F800000, 0, FP32.nan),
}
"""Function, z, alpha and y."""


def test_known_results():
    names, z, alpha, y = zip(*KNOWN.values(), strict=True)
    cases = {"function": [FUNCTIONS[name].code for name in names], "z": z, "alpha": alpha}
    cases = {field: np.array(values, np.uint32) for field, values in cases.items()}
    wrong = differences(cases, np.array(y, np.uint32), "verilator")
    assert wrong.size == 0, [list(KNOWN)[case] for case in wrong]
