from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.spec.formats import FP32, matmul_formats
from neuroncore_rtl.tb.stimulus import operands as stimulus
from tests.hdl.arith.units import run, shuffled
from tests.hdl.simulation import slow_if

ABSENT = 0xFFFFFFFF
"""Stands for an operand that takes no part; golden's NaNs are other words."""


def decoder_cases(rng, fmt, half, count):
    """Return the decoder's inputs and golden's operands: corners with all flags, then random codes, mostly present."""
    corners = np.arange(256) if fmt.bits == 8 else stimulus.corners(fmt)
    codes = np.concatenate([np.repeat(corners, 4), stimulus.random_codes(rng, fmt, count)]).astype(np.uint32)
    flags = np.concatenate([np.tile(range(4), len(corners)), rng.choice([1, 2, 3], count)])
    present, skip_zero = flags != 0, flags % 2
    if fmt == FP32:
        values = arith.operand(codes, fmt, ("hi", "lo")[half])
    else:
        values = arith.operand(codes, fmt)
        values = np.copysign(np.float32(0), values) if half else values
    present &= (values != 0) | (skip_zero == 0)
    expected = np.where(present, arith.canonical(values.view(np.uint32)), ABSENT)
    above = rng.integers(0, 1 << 32, len(codes), np.uint32) & np.uint32((0xFFFFFFFF << fmt.bits) & 0xFFFFFFFF)
    return fmt.code, half, flags != 0, skip_zero, codes | above, expected


def word_of(bits):
    """Return an operand as FP32; a number must be normalised, and an infinity must not look like a zero."""
    operand = Operand().from_bits(bits)
    if operand.inf and operand.nan:
        assert bits == Operand().const({"inf": 1, "nan": 1}).as_bits()
        return ABSENT
    if operand.nan:
        return FP32.nan
    if operand.inf:
        assert operand.significand
        return FP32.infinity | operand.sign << 31
    assert operand.significand >> SIGNIFICAND_BITS - 1 or not (operand.significand or operand.exponent)
    value = operand.significand * 2.0 ** (operand.exponent - OPERAND_BIAS - SIGNIFICAND_BITS + 1)
    return int(np.float32(-value if operand.sign else value).view(np.uint32))


UNITS = [(SIGNIFICAND_BITS, latency) for latency in EdgeDecoder.CUTS] + [(8, 0)]


@pytest.mark.parametrize(
    ("bits", "latency"), slow_if(lambda bits, latency: latency not in (0, max(EdgeDecoder.CUTS)), UNITS)
)
def test_operands_are_those_of_golden(rng, bits, latency):
    kinds = product(matmul_formats(bits), (0, 1) if bits == SIGNIFICAND_BITS else (0,))
    parts = [decoder_cases(rng, fmt, half, 20 if latency else 300) for fmt, half in kinds]
    cases, expected = shuffled(rng, parts, ("format", "half", "present", "skip_zero", "word"))
    found = [word_of(operand << SIGNIFICAND_BITS - bits) for operand in run(EdgeDecoder(bits, latency), cases)]
    np.testing.assert_array_equal(found, expected)
