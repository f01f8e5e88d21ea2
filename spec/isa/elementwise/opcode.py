"""The opcodes of the vector and the scalar engine, and what each of them uses, writes and can do."""

import enum

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.alu import COMPARISONS, REDUCTIONS, SLOW, AluOp
from neuroncore_rtl.spec.isa.engine import Engine

__all__ = [
    "NEVER_INTEGER", "OPCODES", "OPERATIONS", "OUTPUTS", "SCALAR_OPCODES", "SEARCH_ELEMENTS", "STATS_ELEMENTS",
    "STOCHASTIC", "UNIT_OPCODES", "UNIT_OPERATIONS", "USES", "VALUES8", "VECTOR_OPCODES", "Opcode", "transpose_block",
]  # fmt: skip


class Opcode(enum.IntEnum):
    """What an instruction does, with the names of the published instruction set; the value is the code it carries.

    a and b are the source tensors, s0 and s1 the scalars (immediate, or one a partition), op0 and op1 the operations.
    "reversed" swaps an operation's operands: op(s, x) instead of op(x, s).
    """

    TENSOR_COPY = 1
    """dst = a."""
    MEMSET = 2
    """dst = s0."""
    TENSOR_TENSOR = 3
    """dst = op0(a, b)."""
    TENSOR_SCALAR = 4
    """dst = op1(op0(a, s0), s1), each may be reversed."""
    SCALAR_TENSOR_TENSOR = 5
    """dst = op1(op0(a, s0), b), each may be reversed."""
    TENSOR_SCALAR_REDUCE = 6
    """dst = op0(a, s0), may be reversed; result = op1 over all its elements before dst's cast, in order, at `b`."""
    TENSOR_REDUCE = 7
    """dst = op0 over the `axes` innermost dimensions of a, in order; `negate` changes the sign of the result."""
    TENSOR_TENSOR_SCAN = 8
    """r[i] = op1(op0(a[i], r[i-1]), b[i]), r[-1] = s0, dst[i] = r[i]; each may be reversed."""
    BN_STATS = 9
    """dst[0:6] = count, mean, variance * count of the even elements of a, then of the odd ones, by Welford's method."""
    BN_AGGR = 10
    """dst[0:2] = mean, variance of the union of a's triples (count, mean, variance * count)."""
    RECIPROCAL = 11
    """dst = 1 / a."""
    SELECT = 12
    """dst = b where a is not zero, else s0, or with `keep` what dst held."""
    AFFINE_SELECT = 13
    """dst = a where op0(the index as INT32, 0), op0 a comparison, else s0."""
    IOTA = 14
    """dst = the index as INT32, or UINT32 if that is dst's format."""
    TRANSPOSE = 15
    """Blocks of B x B elements, B = min(32, partitions of the machine), are transposed, bits untouched: of a block,
    lane p's element j goes to lane j's element p. Dimension 0 has B elements; lanes go in groups of B."""
    MAX8 = 16
    """dst[0:8] = the largest 8 elements of a, descending; NaN is above all."""
    FIND_INDEX8 = 17
    """dst[k] = row-major position in a of the value b[k]; if there is none, -1, or the largest number of a format
    without a sign. Each element of a matches at most one
    value, the first of those not yet found that equals it, so that repeated values find successive positions. NaN
    equals NaN here, and -0 equals +0."""
    MATCH_REPLACE8 = 18
    """dst = a, with the elements that FIND_INDEX8 would find replaced by s0."""
    DROPOUT = 19
    """dst = 0 where word 1 of the element's random words / 2**32 is below s0 (a probability, FP32), else a."""
    ACTIVATE = 32
    """The scalar engine: y = function(a * s0 + s1), fused; dst = y; the running sum adds y before dst's cast."""


BLOCK = 32
"""Elements and lanes of a transposed block, on a machine that has so many partitions."""

VALUES8 = 8
"""Values that MAX8 finds and the index and replace instructions look for."""

STATS_ELEMENTS = 512
"""Most elements of a BN_STATS, as published."""

SEARCH_ELEMENTS = (8, 16384)
"""Fewest and most elements that MAX8, FIND_INDEX8 and MATCH_REPLACE8 search, as published."""

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
"""What an opcode uses besides dst; "result" is b as a second destination."""

SCALAR_OPCODES = frozenset({_O.ACTIVATE})
"""The scalar engine's."""

VECTOR_OPCODES = frozenset(USES) - SCALAR_OPCODES
"""The vector engine's."""

OPCODES = {Engine.VECTOR: VECTOR_OPCODES, Engine.SCALAR: SCALAR_OPCODES}
"""Those of either engine."""

UNIT_OPCODES = {
    "division": frozenset({_O.RECIPROCAL, _O.BN_AGGR}),
    "search": frozenset({_O.MAX8, _O.FIND_INDEX8, _O.MATCH_REPLACE8}),
    "statistics": frozenset({_O.BN_STATS, _O.BN_AGGR}),
    "random": frozenset({_O.DROPOUT}),
}
"""Opcodes that need a unit which vector lanes may do without (:data:`spec.config.VECTOR_UNITS`)."""

UNIT_OPERATIONS = {
    "division": frozenset({AluOp.DIVIDE, AluOp.MOD, AluOp.FMOD}),
    "power": frozenset({AluOp.POWER}),
}
"""Operations of which the same holds."""

NEVER_INTEGER = frozenset({_O.BN_STATS, _O.BN_AGGR, _O.RECIPROCAL, _O.ACTIVATE, _O.TRANSPOSE})
"""Opcodes that never compute with integers."""

STOCHASTIC = frozenset(
    {
        _O.TENSOR_COPY, _O.MEMSET, _O.TENSOR_TENSOR, _O.TENSOR_SCALAR, _O.SCALAR_TENSOR_TENSOR,
        _O.TENSOR_SCALAR_REDUCE, _O.TENSOR_REDUCE, _O.TENSOR_TENSOR_SCAN, _O.RECIPROCAL, _O.SELECT, _O.DROPOUT,
        _O.ACTIVATE,
    }
)  # fmt: skip
"""Opcodes whose results may be rounded stochastically."""

OUTPUTS: dict[int, int] = {_O.BN_STATS: 6, _O.BN_AGGR: 2, _O.MAX8: VALUES8, _O.FIND_INDEX8: VALUES8}
"""Elements of dst, along dimension 0, of opcodes that do not write element by element."""

_FAST = frozenset(AluOp) - SLOW
OPERATIONS: dict[tuple[Opcode, str], frozenset[AluOp]] = {
    (_O.TENSOR_SCALAR_REDUCE, "op1"): REDUCTIONS,
    (_O.TENSOR_REDUCE, "op0"): REDUCTIONS,
    (_O.TENSOR_TENSOR_SCAN, "op0"): _FAST,
    (_O.TENSOR_TENSOR_SCAN, "op1"): _FAST,
    (_O.AFFINE_SELECT, "op0"): frozenset(COMPARISONS),
}
"""The operations that an opcode can use, where not all."""


def transpose_block(config: Config) -> int:
    """Return the elements and lanes of a block that TRANSPOSE transposes."""
    return min(BLOCK, config.partitions)
