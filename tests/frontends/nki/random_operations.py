"""numpy equivalents of operations, with the machine's arithmetic."""

import operator

import numpy as np

from tests.frontends.nki.sketch import Operand, round_fp32

__all__ = ["BITS", "FLOAT_RESULTS", "OPERATIONS", "PLAIN", "ROUNDINGS", "compute", "words_of"]

PLAIN = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "abs_max": lambda a, b: np.where(np.abs(a) > np.abs(b), a, b), "equal": operator.eq, "not_equal": operator.ne,
    "abs_min": lambda a, b: np.where(np.abs(a) < np.abs(b), a, b),
    "greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
"""Operations of floats and of integers."""

FLOAT_RESULTS = {"divide": np.divide, "mod": np.mod, "fmod": np.fmod}
"""Operations that convert integers to floats; the divisor must not be 0."""

BITS = {name: getattr(np, name) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")}
"""Operations of integers."""

ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
"""Operations of the first operand only."""

OPERATIONS = PLAIN | FLOAT_RESULTS | BITS

EXACT = frozenset(("maximum", "minimum", "abs_max", "abs_min", "right_shift"))
"""Operations with results that are operands, or smaller: they do not wrap."""


def compute(op: str, a: np.ndarray, b: np.ndarray, *, words: str | None) -> np.ndarray:
    """Return op(a, b) of float64 or integers; `words`: 32-bit type in which integers wrap, or None for FP32."""
    if words is None:
        a, b = (np.asarray(value, np.float64) for value in (a, b))
        return round_fp32((PLAIN | FLOAT_RESULTS)[op](a, b)) if op not in ROUNDINGS else ROUNDINGS[op](a)
    a, b = (np.asarray(value).astype(np.int64) for value in (a, b))
    exact = np.asarray(OPERATIONS[op](a, b)).astype(np.int64)
    return exact if op in EXACT else exact.astype(words).astype(np.int64)


def words_of(*operands: Operand, target: str) -> str | None:
    """Return the 32-bit type in which an operation on these operands wraps, or None if it computes in FP32."""
    if any(operand.is_float for operand in operands) or "float" in target:
        return None
    if target in ("int32", "uint32"):
        return target
    signs = any(operand.dtype.startswith("int") for operand in operands)
    return "uint32" if any(operand.dtype == "uint32" for operand in operands) and not signs else "int32"
