"""Step: the input of an element-wise engine's lanes in a cycle."""

from amaranth import signed, unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op

__all__ = ["OF_INSTRUCTION", "ElementwiseStep", "Phase"]


class Phase(enum.Enum, shape=unsigned(3)):
    """Kind of a step. An instruction runs through the phases in this order and skips those it does not need."""

    LOAD_S0 = 0
    """a is the first scalar, which the lane stores."""
    LOAD_S1 = 1
    """a is the second scalar, which the lane stores."""
    LOAD_VALUE = 2
    """b is value `number` of the 8 that FIND_INDEX8 and MATCH_REPLACE8 search for."""
    ELEMENT = 3
    """a and b are the elements at one position of the shape, if the opcode uses them."""
    RESULT = 4
    """No operand; the lane outputs result `number`. TRANSPOSE outputs a column of the last block."""


class ElementwiseStep(data.Struct):
    """One step; fields not listed are copied from the instruction.

    Fields:
        number: index of a LOAD_VALUE or RESULT step, counted from 0 (in TRANSPOSE modulo 16).
        first, last: first, last element of a group: the elements that TENSOR_REDUCE reduces to one, a block of
            TRANSPOSE, else all elements. In RESULT steps: the first, the last RESULT step.
        position: row-major position of the element in the instruction, modulo 2**16.
        integer, uint32: see `hdl.elementwise.job.ElementwiseJobLayout`.
        a_dtype: format of the operand a; in LOAD_S0 and LOAD_S1 the format of the pointer.
        dst_dtype: format of the output.
        stochastic: set only in ELEMENT steps.
        index: index of lane 0's element; lane i adds i * index_partition.
        pointer0, pointer1: scalar 0, scalar 1 was loaded from SBUF; otherwise it is the field `scalar0`, `scalar1`.
        writes: the step's result is written.
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
"""Fields of a step that are copied from the instruction."""
