"""FP32 patterns that are hard to compute with or to round."""

import numpy as np

from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.tb.stimulus.alu_cases import special_pairs
from neuroncore_rtl.tb.stimulus.operands import fp32_bits, special_fp32

__all__ = ["hard_cases", "hard_to_round"]

_HARD = {
    "add": [
        (0x7F7FFFFF, 0x73000000),  # tie at the largest number: overflows
        (0x7F7FFFFF, 0x72FFFFFF),  # just below that tie
        (0x3F800000, 0x33800001),  # just above a tie
        (0x4B800000, 0xB3800000),  # far smaller, subtracted
    ],
    "multiply": [
        (0x00000001, 0x3F000001),  # just above half the smallest number
        (0x3F800003, 0x3F400000),  # tie to even, down
    ],
    "fma": [
        (0x3F800001, 0x3F800001, 0xBF800002),  # what a rounded product loses
        (0x3F800001, 0x3F7FFFFE, 0xBF800000),  # the same below one
        (0x7F7FFFFF, 0x3F800000, 0x73000000),  # tie at the largest number: overflows
        (0x1F800000, 0x1F800000, 0x80000001),  # product above a subnormal addend
        (0x0D800000, 0x26800000, 0x80000001),  # half the smallest number cancelled: a tie to zero
        (0x0D400000, 0x26800000, 0x80000001),  # less than that cancelled
        (0x33800001, 0x3F7FFFFE, 0x3F800000),  # 2**-47 below a tie
    ],
    "divide": [
        (0x3F800000, 0x40400000),  # 1 / 3
        (0x40C00000, 0xC0000000),  # 6 / -2
        (0x00000005, 0x00000003),  # subnormal / subnormal
    ],
    "alu": [
        (0xC0A00000, 0x40400000),  # a negative number of the larger magnitude
        (0x80000000, 0x00000005),  # the smallest integer, or -0
        (0xFFFFFFFE, 0x00000001),  # a small negative integer, or NaN
        (0x3F800000, 0xFFC12345),  # NaN that is not canonical
        (0xC04CCCCD, 0x00000000),  # fractions, and the first numbers without fractions
        (0xC06CCCCD, 0x00000000),
        (0x4AFFFFFF, 0x00000000),
        (0xCAFFFFFF, 0x00000000),
        (0xCB000001, 0x00000000),
        (0x80000001, 0x0000001F),  # distances of shifts
        (0x00000001, 0x00000020),
        (0x00010001, 0x00010001),  # a product that overflows
    ],
}


def hard_cases(operation: str) -> np.ndarray:
    """Return an array of each operand: those above in either order, and pairs or triples of special patterns."""
    a, b, *c = np.array(_HARD[operation], np.uint32).T
    special = np.meshgrid(*[special_fp32()[::2]] * 3) if c else special_pairs()
    return np.concatenate([(a, b, *c), (b, a, *c), np.reshape(special, (len(special), -1))], axis=1)


def hard_to_round(fmt: Format) -> np.ndarray:
    """Return values at, and beside, the ends of the format's range and ties of its smallest and its usual numbers."""
    if not fmt.is_float:
        return fp32_bits(np.add.outer([fmt.min, 0, fmt.max], [-1, -0.5, 0, 0.5, 1])).ravel()
    last, tiny = 2.0**-fmt.mantissa_bits, 2.0 ** (fmt.min_exponent - fmt.mantissa_bits)
    largest = min(fmt.max + 2.0**fmt.max_exponent * last / 2, FP32.max)
    ties = fp32_bits([1 + last / 2, 1 + last * 1.5, tiny / 2, tiny * 1.5, 2.0**fmt.min_exponent - tiny / 2, largest])
    return np.add.outer([0, 1 << 31], np.add.outer([-1, 0, 1], ties)).astype(np.uint32).ravel()
