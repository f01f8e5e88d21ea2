"""Opcodes of the vector and the scalar engine: operands, results, and required units."""

import enum

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.alu import COMPARISONS, REDUCTIONS, SLOW, AluOp
from neuroncore_rtl.spec.isa.engine import Engine

__all__ = [
    "MOVES", "NEVER_INTEGER", "OPCODES", "OPERATIONS", "OUTPUTS", "SCALAR_OPCODES", "SEARCH_ELEMENTS", "STATS_ELEMENTS",
    "STOCHASTIC", "UNIT_OPCODES", "UNIT_OPERATIONS", "USES", "VALUES8", "VECTOR_OPCODES", "Opcode", "transpose_block",
]  # fmt: skip


class Opcode(enum.IntEnum):
    """Opcodes, with the names of the published instruction set.

    a and b are the source tensors, s0 and s1 the scalars (immediate, or one per partition), op0 and op1 the operations.
    A reversed operation has its operands swapped: op(s, x) instead of op(x, s).
    """

    TENSOR_COPY = 1
    """dst = a."""
    MEMSET = 2
    """dst = s0."""
    TENSOR_TENSOR = 3
    """dst = op0(a, b)."""
    TENSOR_SCALAR = 4
    """dst = op1(op0(a, s0), s1); each operation can be reversed."""
    SCALAR_TENSOR_TENSOR = 5
    """dst = op1(op0(a, s0), b); each operation can be reversed."""
    TENSOR_SCALAR_REDUCE = 6
    """dst = op0(a, s0), which can be reversed; b = the reduction by op1 of all its elements before dst's cast, in
    order.
    """
    TENSOR_REDUCE = 7
    """dst = the reduction of a by op0 over the `axes` innermost dimensions, in order; `negate` changes the result's
    sign.
    """
    TENSOR_TENSOR_SCAN = 8
    """dst[i] = r[i] = op1(op0(a[i], r[i-1]), b[i]), with r[-1] = s0; each operation can be reversed."""
    BN_STATS = 9
    """dst[0:6] = count, mean, variance * count of the even elements of a, then of the odd elements, by Welford's
    method.
    """
    BN_AGGR = 10
    """dst[0:2] = mean, variance of the union of the triples (count, mean, variance * count) in a."""
    RECIPROCAL = 11
    """dst = 1 / a."""
    SELECT = 12
    """dst = b where a is not zero, else s0; with `keep`, dst is unchanged there."""
    AFFINE_SELECT = 13
    """dst = a where op0(index as INT32, 0) is true, else s0; op0 is a comparison."""
    IOTA = 14
    """dst = the index as INT32, or as UINT32 if dst has that format."""
    TRANSPOSE = 15
    """dst = a, transposed in blocks of B x B elements, B = min(32, partitions of the machine), with unchanged bits:
    within a group of B partitions, element j of partition p becomes element p of partition j. Dimension 0 has B
    elements.
    """
    MAX8 = 16
    """dst[0:8] = the 8 largest elements of a, descending; NaN is larger than all numbers."""
    FIND_INDEX8 = 17
    """dst[k] = row-major index in a of the value b[k]; -1 if it is not found, or the largest number of an unsigned
    format. Each element of a matches at most one value, the first equal one that is not yet found, so that repeated
    values find successive elements. NaN equals NaN here, and -0 equals +0.
    """
    MATCH_REPLACE8 = 18
    """dst = a, with the elements that FIND_INDEX8 would find replaced by s0."""
    DROPOUT = 19
    """dst = 0 where (word 1 of the element's random words) / 2**32 is below s0 (a probability, FP32), else a."""
    ACTIVATE = 32
    """Scalar engine: y = function(a * s0 + s1), fused; dst = y; the running sum adds y before dst's cast."""


BLOCK = 32
"""Size of a block of TRANSPOSE; smaller on machines with fewer partitions."""

VALUES8 = 8
"""Values that MAX8 finds, and that FIND_INDEX8 and MATCH_REPLACE8 search for."""

STATS_ELEMENTS = 512
"""Maximum elements of a BN_STATS, as published."""

SEARCH_ELEMENTS = (8, 16384)
"""Minimum and maximum elements for MAX8, FIND_INDEX8 and MATCH_REPLACE8, as published."""

_O = Opcode
USES: dict[Opcode, str] = {
    _O.TENSOR_COPY: "a",
    _O.MEMSET: "s0",
    _O.TENSOR_TENSOR: "a b op0",
    _O.TENSOR_SCALAR: "a s0 s1 op0 op1",
    _O.SCALAR_TENSOR_TENSOR: "a b s0 op0 op1",
    _O.TENSOR_SCALAR_REDUCE: "a s0 op0 op1 result",
    _O.TENSOR_REDUCE: "a op0",
    _O.TENSOR_TENSOR_SCAN: "a b s0 op0 op1",
    _O.BN_STATS: "a",
    _O.BN_AGGR: "a",
    _O.RECIPROCAL: "a",
    _O.SELECT: "a b s0",
    _O.AFFINE_SELECT: "a s0 op0",
    _O.IOTA: "",
    _O.TRANSPOSE: "a",
    _O.MAX8: "a",
    _O.FIND_INDEX8: "a b",
    _O.MATCH_REPLACE8: "a b s0",
    _O.DROPOUT: "a s0",
    _O.ACTIVATE: "a s0 s1",
}
"""Operands that an opcode uses in addition to dst; "result" is b as a second destination."""

SCALAR_OPCODES = frozenset({_O.ACTIVATE})

VECTOR_OPCODES = frozenset(USES) - SCALAR_OPCODES

OPCODES = {Engine.VECTOR: VECTOR_OPCODES, Engine.SCALAR: SCALAR_OPCODES}

UNIT_OPCODES = {
    "division": frozenset({_O.RECIPROCAL, _O.BN_AGGR}),
    "search": frozenset({_O.MAX8, _O.FIND_INDEX8, _O.MATCH_REPLACE8}),
    "statistics": frozenset({_O.BN_STATS, _O.BN_AGGR}),
    "random": frozenset({_O.DROPOUT}),
}
"""Opcodes that need an optional unit of the vector lanes (`spec.config.VECTOR_UNITS`)."""

UNIT_OPERATIONS = {
    "division": frozenset({AluOp.DIVIDE, AluOp.MOD, AluOp.FMOD}),
    "power": frozenset({AluOp.POWER}),
}
"""ALU operations that need an optional unit."""

NEVER_INTEGER = frozenset({_O.BN_STATS, _O.BN_AGGR, _O.RECIPROCAL, _O.ACTIVATE, _O.TRANSPOSE})
"""Opcodes without integer arithmetic."""

MOVES = frozenset({_O.TENSOR_COPY, _O.MEMSET, _O.SELECT, _O.AFFINE_SELECT, _O.IOTA})
"""Opcodes whose results are numbers of their operands, only cast."""

STOCHASTIC = frozenset(
    {
        _O.TENSOR_COPY, _O.MEMSET, _O.TENSOR_TENSOR, _O.TENSOR_SCALAR, _O.SCALAR_TENSOR_TENSOR,
        _O.TENSOR_SCALAR_REDUCE, _O.TENSOR_REDUCE, _O.TENSOR_TENSOR_SCAN, _O.RECIPROCAL, _O.SELECT, _O.DROPOUT,
        _O.ACTIVATE,
    }
)  # fmt: skip
"""Opcodes with results that can be rounded stochastically."""

OUTPUTS: dict[int, int] = {_O.BN_STATS: 6, _O.BN_AGGR: 2, _O.MAX8: VALUES8, _O.FIND_INDEX8: VALUES8}
"""Elements of dst for opcodes that do not write element by element."""

_FAST = frozenset(AluOp) - SLOW
OPERATIONS: dict[tuple[Opcode, str], frozenset[AluOp]] = {
    (_O.TENSOR_SCALAR_REDUCE, "op1"): REDUCTIONS,
    (_O.TENSOR_REDUCE, "op0"): REDUCTIONS,
    (_O.TENSOR_TENSOR_SCAN, "op0"): _FAST,
    (_O.TENSOR_TENSOR_SCAN, "op1"): _FAST,
    (_O.AFFINE_SELECT, "op0"): frozenset(COMPARISONS),
}
"""Allowed operations of an opcode, if not all are allowed."""


def transpose_block(config: Config) -> int:
    """Return the partitions of a square block of TRANSPOSE, which are also its elements per partition."""
    return min(BLOCK, config.partitions)
