"""Results that are known without any model, each by what is special about it; golden and the units must have them."""

from collections.abc import Iterable, Mapping

from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP8E5M2, FP16, FP32, INT8, INT16, INT32, TF32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["ALU", "ARITHMETIC", "RANDOM123", "ROUNDED", "SATURATED", "WIDENED", "assert_known"]


def assert_known(rows: Mapping[str, tuple], found: Iterable[int]) -> None:
    """Compare results with the last word of each row."""
    expected = {special: hex(row[-1]) for special, row in rows.items()}
    assert {special: hex(word) for special, word in zip(rows, found, strict=True)} == expected


ARITHMETIC = {
    "add": {
        "both zeros negative": (0x80000000, 0x80000000, 0x80000000),
        "zeros of both signs": (0x00000000, 0x80000000, 0x00000000),
        "cancellation is +0": (0xBF800000, 0x3F800000, 0x00000000),
        "Inf - Inf": (0x7F800000, 0xFF800000, FP32.nan),
        "-Inf - Inf": (0xFF800000, 0xFF800000, 0xFF800000),
        "NaN is canonical": (0xFFC00001, 0x3F800000, FP32.nan),
        "Inf + Inf": (0x7F800000, 0x7F800000, 0x7F800000),
        "Inf + NaN": (0x7F800000, 0x7F800001, FP32.nan),
        "signalling NaN": (0xFF800001, 0x3F800000, FP32.nan),
        "overflow by far": (0x7F7FFFFF, 0x7F7FFFFF, 0x7F800000),
        "tie at the largest overflows": (0x7F7FFFFF, 0x73000000, 0x7F800000),
        "just below the tie at the largest": (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
        "smallest normal minus smallest subnormal": (0x00800000, 0x80000001, 0x007FFFFF),
        "subnormals carry into the smallest normal": (0x007FFFFF, 0x00000001, 0x00800000),
        "tie to even, down": (0x3F800000, 0x33800000, 0x3F800000),
        "tie to even, up": (0x3F800001, 0x33800000, 0x3F800002),
        "just above the tie": (0x3F800000, 0x33800001, 0x3F800001),
        "far smaller, subtracted": (0x4B800000, 0xB3800000, 0x4B800000),
    },
    "multiply": {
        "one": (0x3F800000, 0x12345678, 0x12345678),
        "-0": (0x80000000, 0x3F800000, 0x80000000),
        "-0 times a subnormal": (0x80000000, 0x80000001, 0x00000000),
        "Inf * 0": (0x7F800000, 0x00000000, FP32.nan),
        "Inf times a subnormal": (0x7F800000, 0x80000001, 0xFF800000),
        "NaN is canonical": (0xFF800001, 0x00000000, FP32.nan),
        "overflow": (0x7F7FFFFF, 0x3F800001, 0x7F800000),
        "overflow by far": (0x7F7FFFFF, 0x7F7FFFFF, 0x7F800000),
        "largest times smallest": (0x7F7FFFFF, 0x00000001, 0x34FFFFFF),
        "half the smallest ties to zero": (0x00000001, 0x3F000000, 0x00000000),
        "just above half the smallest": (0x00000001, 0x3F000001, 0x00000001),
        "subnormal tie to even, up": (0x00000003, 0x3F000000, 0x00000002),
        "rounds up to the smallest normal": (0x00FFFFFF, 0x3F000000, 0x00800000),
        "tie below the smallest normal": (0x00800000, 0x3F7FFFFF, 0x00800000),
        "subnormals underflow, sign kept": (0x807FFFFF, 0x007FFFFF, 0x80000000),
        "inexact, down": (0x3F800001, 0x3F800001, 0x3F800002),
        "product above two": (0x3FFFFFFF, 0x3FFFFFFF, 0x407FFFFE),
        "tie to even, down": (0x3F800003, 0x3F400000, 0x3F400004),
        "tie to even, up": (0x3F800001, 0x3FC00000, 0x3FC00002),
    },
    "fma": {
        "cancellation is +0": (0x3F800000, 0x3F800000, 0xBF800000, 0x00000000),
        "both zeros negative": (0x80000000, 0x3F800000, 0x80000000, 0x80000000),
        "zeros of both signs": (0x80000000, 0x3F800000, 0x00000000, 0x00000000),
        "zero times the largest": (0x00000000, 0x7F7FFFFF, 0x80000001, 0x80000001),
        "what a rounded product loses": (0x3F800001, 0x3F800001, 0xBF800002, 0x28800000),
        "the same below one": (0x3F800001, 0x3F7FFFFE, 0xBF800000, 0xA8800000),
        "Inf * 0": (0x7F800000, 0x00000000, 0x3F800000, FP32.nan),
        "Inf - Inf": (0x7F800000, 0x00000001, 0xFF800000, FP32.nan),
        "Inf * 1 - Inf": (0x7F800000, 0x3F800000, 0xFF800000, FP32.nan),
        "an infinite product of small exponent": (0x7F800000, 0x80000001, 0x7F7FFFFF, 0xFF800000),
        "an infinite addend of smaller exponent": (0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0x7F800000),
        "NaN is canonical": (0x3F800000, 0x3F800000, 0xFF800001, FP32.nan),
        "NaN of a factor": (0xFF800001, 0x3F800000, 0x3F800000, FP32.nan),
        "overflow that the addend takes back": (0x7F7FFFFF, 0x40000000, 0xFF7FFFFF, 0x7F7FFFFF),
        "tie at the largest overflows": (0x7F7FFFFF, 0x3F800000, 0x73000000, 0x7F800000),
        "vanishing product": (0x00000001, 0x00000001, 0x00000001, 0x00000001),
        "vanishing product alone": (0x00000001, 0x00000001, 0x80000000, 0x00000000),
        "vanishing product, smallest addend": (0x00000001, 0x00000001, 0x80000001, 0x80000001),
        "vanishing product, subtracted": (0x00000001, 0x80000001, 0x00800000, 0x00800000),
        "subnormal sum": (0x00800000, 0x3F000000, 0x00000001, 0x00400001),
        "product above a subnormal addend": (0x1F800000, 0x1F800000, 0x80000001, 0x001FFFFF),
        "half the smallest cancelled, tie to zero": (0x0D800000, 0x26800000, 0x80000001, 0x80000000),
        "less than half the smallest cancelled": (0x0D400000, 0x26800000, 0x80000001, 0x80000001),
        "tie to even, up": (0x3F800000, 0x33800000, 0x3F800001, 0x3F800002),
        "just above the tie": (0x3F800001, 0x33800000, 0x3F800000, 0x3F800001),
        "2**-47 below the tie": (0x33800001, 0x3F7FFFFE, 0x3F800000, 0x3F800000),
    },
    "divide": {
        "1 / 3": (0x3F800000, 0x40400000, 0x3EAAAAAB),
        "6 / -2": (0x40C00000, 0xC0000000, 0xC0400000),
        "1 / 0": (0x3F800000, 0x00000000, 0x7F800000),
        "1 / -0": (0x3F800000, 0x80000000, 0xFF800000),
        "-Inf / -0": (0xFF800000, 0x80000000, 0x7F800000),
        "-0 / smallest": (0x80000000, 0x00000001, 0x80000000),
        "0 / -0": (0x00000000, 0x80000000, FP32.nan),
        "Inf / -Inf": (0x7F800000, 0xFF800000, FP32.nan),
        "NaN is canonical": (0xFFC12345, 0x3F800000, FP32.nan),
        "1 / NaN": (0x3F800000, 0x7F800001, FP32.nan),
        "max / -Inf": (0x7F7FFFFF, 0xFF800000, 0x80000000),
        "overflow": (0x7F7FFFFF, 0x00000001, 0x7F800000),
        "just overflows": (0x7F7FFFFF, 0x3F7FFFFF, 0x7F800000),
        "rounds up to the largest": (0x7F7FFFFE, 0x3F7FFFFF, 0x7F7FFFFF),
        "tie at half the smallest goes to zero": (0x00000001, 0x40000000, 0x00000000),
        "just above that tie": (0x00000001, 0x3FFFFFFF, 0x00000001),
        "tie between subnormals": (0x00000003, 0x40000000, 0x00000002),
        "far below the smallest": (0x00000001, 0x7F7FFFFF, 0x00000000),
        "rounds up into the smallest normal": (0x00FFFFFF, 0x40000000, 0x00800000),
        "subnormal / subnormal": (0x00000005, 0x00000003, 0x3FD55555),
        "largest subnormal": (0x00800000, 0x3F800001, 0x007FFFFF),
    },
}
"""By the operation: FP32 operands and the result."""

ROUNDED = {
    "tie to even, down": (BF16, 0x3F808000, None, 0x3F80),
    "tie to even, up": (BF16, 0x3F818000, None, 0x3F82),
    "stochastic, half and a half carry": (BF16, 0x3F808000, 0x80000000, 0x3F81),
    "stochastic, one less does not": (BF16, 0x3F808000, 0x7FFFFFFF, 0x3F80),
    "stochastic, representable stays": (BF16, 0x3F800000, 0xFFFFFFFF, 0x3F80),
    "stochastic, smallest subnormal up": (BF16, 0x00000001, 0xFFFF0000, 0x0001),
    "stochastic, underflow keeps the sign": (BF16, 0x80000001, 0xFFFEFFFF, 0x8000),
    "overflow by rounding": (BF16, 0x7F7FFFFF, None, 0x7F80),
    "smallest subnormal": (FP8E5M2, 0x37800000, None, 0x01),
    "tie at half of it": (FP8E5M2, 0x37000000, None, 0x00),
    "just above half of it": (FP8E5M2, 0x37000001, None, 0x01),
    "up into the smallest normal": (FP8E5M2, 0x387FFFFF, None, 0x04),
    "stochastic, 2**-32 of a place is seen": (FP8E5M2, 0x27800000, 0xFFFFFFFF, 0x01),
    "stochastic, less than that is cut": (FP8E5M2, 0x277FFFFF, 0xFFFFFFFF, 0x00),
    "NaN is canonical": (FP32, 0xFFC12345, None, FP32.nan),
    "identity": (FP32, 0x00000001, 0xFFFFFFFF, 0x00000001),
    "127.5 saturates": (INT8, 0x42FF0000, None, 0x7F),
    "-128.5 ties to the even end": (INT8, 0xC3008000, None, 0x80),
    "-129 saturates": (INT8, 0xC3010000, None, 0x80),
    "-0.5 ties to zero": (INT8, 0xBF000000, None, 0x00),
    "NaN is integer zero": (INT8, 0x7FC00000, None, 0x00),
    "Inf saturates": (INT32, 0x7F800000, None, 0x7FFFFFFF),
    "-Inf saturates": (INT32, 0xFF800000, 0, 0x80000000),
    "-2**31 is exact": (INT32, 0xCF000000, None, 0x80000000),
    "2**31 saturates": (INT32, 0x4F000000, None, 0x7FFFFFFF),
}
"""Format, FP32 word, random word or None for nearest even, code."""

WIDENED = {
    "FP32 subnormal": (FP32, 0x80000001, 0x80000001),
    "FP32 NaN is canonical": (FP32, 0xFFC12345, FP32.nan),
    "TF32 padding is ignored": (TF32, 0x3F801FFF, 0x3F800000),
    "TF32 padding alone is zero": (TF32, 0x80001FFF, 0x80000000),
    "TF32 padding tells a NaN": (TF32, 0xFF800001, FP32.nan),
    "TF32 infinity": (TF32, 0xFF800000, 0xFF800000),
    "BF16 subnormal, upper bits ignored": (BF16, 0xDEAD0001, 0x00010000),
    "FP16 smallest subnormal": (FP16, 0x0001, 0x33800000),
    "FP16 largest subnormal": (FP16, 0x83FF, 0xB87FC000),
    "FP16 infinity": (FP16, 0xFC00, 0xFF800000),
    "FP16 NaN": (FP16, 0x7C01, FP32.nan),
    "FP16 -0": (FP16, 0xFFFF8000, 0x80000000),
    "E4M3 largest, 240": (FP8E4M3, 0x77, 0x43700000),
    "E4M3 infinity": (FP8E4M3, 0x78, 0x7F800000),
    "-128": (INT8, 0x80, 0xC3000000),
    "INT16 zero": (INT16, 0xFFFF0000, 0x00000000),
    "-2**31": (INT32, 0x80000000, 0xCF000000),
    "2**31 - 1 rounds up to 2**31": (INT32, 0x7FFFFFFF, 0x4F000000),
    "2**24 + 1 ties to even, down": (INT32, 0x01000001, 0x4B800000),
    "2**24 + 3 ties to even, up": (INT32, 0x01000003, 0x4B800002),
    "-2**24 - 1 ties to even": (INT32, 0xFEFFFFFF, 0xCB800000),
}
"""Format, code with anything above it, FP32 word."""

SATURATED = {
    f"{fmt.name} {value}": (fmt, value, word)
    for fmt, value, word in [
        (INT8, 127, 0x7F), (INT8, 128, 0x7F), (INT8, -128, 0x80), (INT8, -129, 0x80), (INT8, -1, 0xFF),
        (INT16, 32768, 0x7FFF), (INT16, -32769, 0x8000), (INT16, -1, 0xFFFF), (INT32, -(1 << 31), 0x80000000),
    ]
}  # fmt: skip
"""Format, number, code."""

ONE, TWO, NAN, INF, NEGATIVE = 0x3F800000, 0x40000000, FP32.nan, 0x7F800000, 1 << 31

ALU = [
    (AluOp.BYPASS, 0xFF812345, ONE, 0xFF812345, 0xFF812345),
    (AluOp.ADD, ONE, ONE, TWO, 0x7F000000),
    (AluOp.ADD, INF, INF | NEGATIVE, NAN, 0x7F000000),
    (AluOp.ADD, 0x7FFFFFFF, 1, NAN, NEGATIVE),
    (AluOp.ADD, 1, NEGATIVE | 1, 0, NEGATIVE | 2),
    (AluOp.SUBTRACT, ONE, TWO, ONE | NEGATIVE, 0xFF800000),
    (AluOp.SUBTRACT, ONE, ONE, 0, 0),
    (AluOp.SUBTRACT, 0, 0xFFC12345, NAN, 0x003EDCBB),
    (AluOp.MULTIPLY, 0x00010001, 0x00010001, 0, 0x00020001),
    (AluOp.MAX, 0, NEGATIVE, 0, 0),
    (AluOp.MAX, NEGATIVE, 0, 0, 0),
    (AluOp.MAX, 0xFFFFFFFF, ONE, NAN, ONE),
    (AluOp.MAX, 0xFFFFFFFF, INF, NAN, INF),
    (AluOp.MAX, 0xBF800000, 0xC0000000, 0xBF800000, 0xC0000000),
    (AluOp.MIN, 0, NEGATIVE, NEGATIVE, NEGATIVE),
    (AluOp.MIN, 0x7F800001, ONE, NAN, ONE),
    (AluOp.MIN, 0xBF800000, 0xC0000000, 0xC0000000, 0xBF800000),
    (AluOp.ABSOLUTE_MAX, 0xC0000000, ONE, TWO, 0x40000000),
    (AluOp.ABSOLUTE_MAX, NEGATIVE, 5, 5, 5),
    (AluOp.ABSOLUTE_MAX, NEGATIVE, NEGATIVE, 0, NEGATIVE),
    (AluOp.ABSOLUTE_MAX, 0xFFFFFFFF, 0, NAN, 1),
    (AluOp.IS_EQUAL, 0, NEGATIVE, ONE, 0),
    (AluOp.IS_EQUAL, NAN, NAN, 0, 1),
    (AluOp.NOT_EQUAL, NAN, NAN, ONE, 0),
    (AluOp.IS_GE, NAN, NAN, 0, 1),
    (AluOp.IS_LE, NAN, ONE, 0, 0),
    (AluOp.IS_GT, 0, NEGATIVE, 0, 1),
    (AluOp.IS_LT, NEGATIVE, 0, 0, 1),
    (AluOp.IS_LT, 0xFF800000, INF, ONE, 1),
    (AluOp.IS_LT, 0xC0000000, 0xBF800000, ONE, 0),
    (AluOp.LOGICAL_AND, NAN, 1, ONE, 1),
    (AluOp.LOGICAL_OR, NEGATIVE, 0, 0, 1),
    (AluOp.LOGICAL_XOR, NEGATIVE, 1, ONE, 0),
    (AluOp.LOGICAL_SHIFT_LEFT, 0x80000001, 31, NEGATIVE, NEGATIVE),
    (AluOp.LOGICAL_SHIFT_LEFT, 1, 32, 0, 0),
    (AluOp.LOGICAL_SHIFT_RIGHT, NEGATIVE, 31, 1, 1),
    (AluOp.LOGICAL_SHIFT_RIGHT, 0xFFFFFFFF, NEGATIVE, 0, 0),
]
"""Operation, a, b, result in FP32, result in INT32."""

RANDOM123 = [
    (13, (0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x9D1C5EC6, 0x8BD50731)),
    (13, (0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0xFD36D048, 0x2D17272C)),
    (13, (0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xBA3E4725, 0xF27D669E)),
    (20, (0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    (20, (0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    (20, (0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    (32, (0x00000000, 0x00000000), (0x00000000, 0x00000000), (0xCEE3D47E, 0xA23DFD5C)),
    (32, (0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x6E2FE0D0, 0xB1B76F82)),
    (32, (0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xE2827716, 0xC3C05CDF)),
]
"""Rounds, counter, key, result: the threefry2x32 lines of tests/kat_vectors in Random123 (DEShawResearch/random123)."""
