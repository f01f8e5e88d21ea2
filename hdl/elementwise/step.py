"""What the lanes of an element-wise engine get each cycle: a step of an instruction."""

from amaranth import signed, unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op

__all__ = ["OF_INSTRUCTION", "ElementwiseStep", "Phase"]


class Phase(enum.Enum, shape=unsigned(3)):
    """What a step is for. An instruction takes the phases in this order, and leaves out what it does not need."""

    LOAD_S0 = 0
    """a is the first scalar of the lane, which keeps it."""
    LOAD_S1 = 1
    """a is the second scalar of the lane."""
    LOAD_VALUE = 2
    """b is the value of this number, of the 8 that FIND_INDEX8 and MATCH_REPLACE8 look for."""
    ELEMENT = 3
    """a and b are the elements of one place of the shape, as far as the opcode uses them."""
    RESULT = 4
    """Nothing is read; the lane puts out the result of this number. TRANSPOSE puts out a column of the last block."""


class ElementwiseStep(data.Struct):
    """One step. Fields without a word here are those of the instruction.

    number: of a LOAD_VALUE or RESULT step, from 0 (TRANSPOSE: modulo 16). first, last: of the elements that
    TENSOR_REDUCE reduces to one, of a block of TRANSPOSE, else of the instruction's elements; of RESULT steps the first
    and the last. position: row-major position of the element in the instruction, modulo 2**16. integer: the instruction
    computes with integers; uint32: they are UINT32, else INT32. a_dtype: in LOAD_S0 and LOAD_S1 the pointer's.
    dst_dtype: of what the step writes. stochastic: of ELEMENT steps alone. index: of lane 0's element; lane i adds i *
    index_partition. pointer0: the scalar is what LOAD_S0 loaded, not scalar0; so pointer1. writes: the step's result is
    written.
    """

    phase: Phase
    opcode: ElementwiseOpcode
    partitions: unsigned(11)
    number: unsigned(4)
    first: unsigned(1)
    last: unsigned(1)
    position: unsigned(16)
    op0: Op
    op1: Op
    reverse0: unsigned(1)
    reverse1: unsigned(1)
    integer: unsigned(1)
    uint32: unsigned(1)
    negate: unsigned(1)
    keep: unsigned(1)
    function: unsigned(6)
    alpha: unsigned(32)
    sum_continue: unsigned(1)
    stochastic: unsigned(1)
    pointer0: unsigned(1)
    scalar0: unsigned(32)
    pointer1: unsigned(1)
    scalar1: unsigned(32)
    a_dtype: FormatCode
    b_dtype: FormatCode
    dst_dtype: FormatCode
    seed: unsigned(32)
    stream: unsigned(32)
    index: unsigned(64)
    index_partition: signed(32)
    writes: unsigned(1)


OF_INSTRUCTION = (
    "opcode", "partitions", "op0", "op1", "reverse0", "reverse1", "negate", "keep", "function", "alpha",
    "sum_continue", "pointer0", "scalar0", "pointer1", "scalar1", "a_dtype", "b_dtype", "dst_dtype", "seed", "stream",
    "index_partition",
)  # fmt: skip
"""Fields that a step has from its instruction."""
