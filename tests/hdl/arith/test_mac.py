from itertools import product

import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.run.harness.player import pack_inputs
from neuroncore_rtl.spec.formats import BF16, FP8E3M4, FP8E4M3, FP8E5M2, FP32, INT8, MAC_FORMATS, matmul_formats
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.one_bit import lone_macs
from neuroncore_rtl.tb.tests.engines.mac import MacUnit
from tests.hdl.arith.units import assert_same, run, shuffled
from tests.hdl.simulation import slow_if

PER_FORMAT = 200
NARROW = {BF16, FP8E3M4, FP8E4M3, FP8E5M2, INT8}


@pytest.mark.parametrize(
    ("latency", "significand_bits"),
    slow_if(
        lambda *case: case not in ((1, 8), (max(Mac.CUTS), 12)), [*((n, 12) for n in sorted(Mac.CUTS)), (1, 8), (5, 8)]
    ),
)
def test_mac_is_that_of_golden(rng, latency, significand_bits):
    formats = MAC_FORMATS if significand_bits == 12 else NARROW
    assert set(matmul_formats(significand_bits)) - {FP32} == set(formats)
    unit, parts = MacUnit(latency, significand_bits), []
    for fmt in formats:
        x, w, acc = stimulus.mac_cases(rng, fmt, PER_FORMAT)
        parts.append((fmt.code, x, w, acc, 0, 0, arith.mac(x, w, acc, fmt)))
    for x_half, w_half in product(("hi", "lo"), repeat=2) if significand_bits == 12 else ():
        x, w, acc = stimulus.mac_cases(rng, FP32, PER_FORMAT, x_half, w_half)
        halves = x_half == "lo", w_half == "lo"
        parts.append((FP32.code, x, w, acc, *halves, arith.mac(x, w, acc, FP32, x_half, w_half)))
    cases, expected = shuffled(rng, parts, ("format", "x", "w", "acc", "x_half", "w_half"))
    words = [int.from_bytes(word.tobytes(), "big") for word in pack_inputs(unit.layout, **cases)]
    assert run(unit, {"word": words}, "result") == expected.tolist()


def test_one_bit_of_an_operand_the_accumulator_or_the_product_decides(rng):
    parts = []
    for fmt in MAC_FORMATS:
        if fmt.is_float:
            x, w, acc = lone_macs(fmt)
            parts.append((fmt.code, x, w, acc, 0, 0, arith.mac(x, w, acc, fmt)))
    x, w, acc = lone_macs(FP32)
    for halves in product((0, 1), repeat=2):
        names = (("hi", "lo")[half] for half in halves)
        parts.append((FP32.code, x, w, acc, *halves, arith.mac(x, w, acc, FP32, *names)))
    cases, expected = shuffled(rng, parts, ("format", "x", "w", "acc", "x_half", "w_half"))
    assert len(expected) > 50_000
    assert_same(MacUnit(2), cases, expected, "verilator")
