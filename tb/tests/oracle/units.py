# amaranth: UnusedElaboratable=no

"""Scalar operations of third-party suites: the hardware units that compute them, and golden."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from neuroncore_rtl.golden import arith
from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.vector.alu import VectorAlu
from neuroncore_rtl.run.harness.player import Playable, PlayedUnit
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT32, TF32, UINT32, Format
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.tb.tests.engines.mac import MacUnit

__all__ = ["ORACLE_OPERATIONS", "ORACLE_UNITS", "OracleOperation", "nan"]

_ALU_PORTS, _ROUNDER_PORTS = ("op", "integer", "uint32", "a", "b"), ("format", "stochastic", "value", "random")

ORACLE_UNITS: Mapping[str, Callable[[int, int], Playable]] = {
    "PE": lambda mac, vector: MacUnit(mac),
    "ALU": lambda mac, vector: PlayedUnit(VectorAlu(vector), _ALU_PORTS),
    "FMA": lambda mac, vector: PlayedUnit(Fp32Fma(vector), ("a", "b", "c")),
    "divider": lambda mac, vector: PlayedUnit(Fp32Divider(), ("a", "b")),
    "widen": lambda mac, vector: PlayedUnit(Widen(1), ("dtype", "word"), output="fp32"),
    "round": lambda mac, vector: PlayedUnit(Fp32Rounder(), _ROUNDER_PORTS, output="word"),
}
"""Functions that make a unit from two latencies: of the multiply-accumulate, and of the ALU of a vector lane."""


@dataclass(frozen=True, kw_only=True)
class OracleOperation:
    """An operation on one of `ORACLE_UNITS`.

    `golden` is a function from operands to results, uint32 words; `fields` from operands to the unit's inputs; `takes`
    from operands to a mask of the cases to play, and `why` is the reason to skip the others.
    """

    unit: str
    fields: Callable[..., Mapping[str, np.ndarray]]
    golden: Callable[..., np.ndarray]
    result: Format = FP32
    takes: Callable[..., np.ndarray] | None = None
    why: str = ""


def nan(words: np.ndarray) -> np.ndarray:
    """Return a mask of the FP32 words that are NaN."""
    return words << np.uint32(1) > np.uint32(FP32.infinity << 1)


def _full(word: np.ndarray, value: int) -> np.ndarray:
    return np.full(len(word), value, np.uint32)


def _alu(op: AluOp, **limits: object) -> tuple[OracleOperation]:
    def fields(a, b=None):
        zero = np.zeros_like(a)
        return {"op": _full(a, op), "integer": zero, "uint32": zero, "a": a, "b": zero if b is None else b}

    return (OracleOperation(unit="ALU", fields=fields, golden=lambda a, b=0: alu(op, a, b), **limits),)


def _on_words(function: Callable, *operands: np.ndarray) -> np.ndarray:
    return function(*(operand.view(np.float32) for operand in operands)).view(np.uint32)


def _widened(fmt: Format) -> tuple[OracleOperation]:
    def golden(word):
        return arith.widen(word.astype(arith.storage_dtype(fmt)), fmt)

    return (
        OracleOperation(
            unit="widen", fields=lambda word: {"dtype": _full(word, fmt.code), "word": word}, golden=golden
        ),
    )


def _rounded(fmt: Format) -> tuple[OracleOperation]:
    def fields(value):
        zero = np.zeros_like(value)
        return {"format": _full(value, fmt.code), "stochastic": zero, "value": value, "random": zero}

    def golden(value):
        return arith.round_fp32(value, fmt).astype(np.uint32)

    return (OracleOperation(unit="round", fields=fields, golden=golden, result=fmt),)


_NUMBERS = {"takes": lambda a, b: ~(nan(a) | nan(b)), "why": "maximum or minimum of NaN"}

ORACLE_OPERATIONS: Mapping[str, tuple[OracleOperation, ...]] = {
    "add": _alu(AluOp.ADD),
    "subtract": _alu(AluOp.SUBTRACT),
    "multiply": _alu(AluOp.MULTIPLY),
    "divide": (
        OracleOperation(
            unit="divider", fields=lambda a, b: {"a": a, "b": b}, golden=partial(_on_words, arith.divide_fp32)
        ),
    ),
    "multiply-add": (
        OracleOperation(
            unit="PE",
            fields=lambda x, w, acc: {
                **{"format": _full(x, TF32.code), "x": x, "w": w, "acc": acc},
                **{"x_half": _full(x, 0), "w_half": _full(w, 0)},
            },
            golden=lambda x, w, acc: arith.mac(x, w, acc, TF32),
            takes=lambda x, w, acc: (x | w) & np.uint32((1 << TF32.padding_bits) - 1) == 0,
            why="factors beyond TF32",
        ),
        OracleOperation(
            unit="FMA",
            fields=lambda a, b, c: {"a": a, "b": b, "c": c},
            golden=partial(_on_words, arith.multiply_add_fp32),
        ),
    ),
    "equal": _alu(AluOp.IS_EQUAL),
    "less": _alu(AluOp.IS_LT),
    "less or equal": _alu(AluOp.IS_LE),
    "max": _alu(AluOp.MAX, **_NUMBERS),
    "min": _alu(AluOp.MIN, **_NUMBERS),
    "larger magnitude": _alu(
        AluOp.LARGER_MAGNITUDE,
        takes=lambda a, b: ~(nan(a) | nan(b)) & ((a ^ b) << np.uint32(1) != 0),
        why="equal magnitudes or NaN",
    ),
    "floor": _alu(AluOp.FLOOR),
    "ceil": _alu(AluOp.CEIL),
    "trunc": _alu(AluOp.TRUNC),
    **{f"{fmt.name} to fp32": _widened(fmt) for fmt in (FP16, BF16, INT32, UINT32)},
    **{f"fp32 to {fmt.name}": _rounded(fmt) for fmt in (FP16, BF16, INT32, UINT32)},
}
