"""Control words of a vector lane.

Each except `Decoded` belongs to one stage of `hdl.vector.lane.VectorLane` and arrives there with the
data. `hdl.vector.decode` derives them from a step.
"""

from amaranth import unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import Op
from neuroncore_rtl.hdl.vector.search import POSITION_BITS, Probe
from neuroncore_rtl.hdl.vector.stats import Sample
from neuroncore_rtl.spec.isa.elementwise import VALUES8

__all__ = [
    "Cast", "Chain", "Decoded", "Events", "Finish", "First", "LaneTurns", "Load", "OpcodeEntry", "Operate", "Other",
    "Second", "Source", "Unit",
]  # fmt: skip


class OpcodeEntry(data.Struct):
    """Control of stage 0 in the first cycle of a step.

    `iota`: the index of the element replaces the word `a`. `odd`: see `hdl.arith.widen.Widen`.
    """

    iota: unsigned(1)
    odd: unsigned(1)
    a_dtype: FormatCode
    b_dtype: FormatCode


class Load(data.Struct):
    """Control of stage 0 in its last cycle.

    Fields:
        a_integer, b_integer: widen the word `a`, the word `b` to an integer, else to FP32.
        load0, load1: store the word `a` as scalar s0, as scalar s1.
        immediate0, immediate1: scalar s0, scalar s1 is the immediate of the step, else the stored scalar.
    """

    a_integer: unsigned(1)
    b_integer: unsigned(1)
    load0: unsigned(1)
    load1: unsigned(1)
    immediate0: unsigned(1)
    immediate1: unsigned(1)


class Unit(enum.Enum, shape=unsigned(2)):
    """Unit of a slow operation: the power unit, or the divider's quotient or one of its remainders."""

    QUOTIENT = 0
    POWER = 1
    MOD = 2
    FMOD = 3


class First(enum.Enum, shape=unsigned(3)):
    """First operand of op0, the operation of stage 1."""

    A = 0
    S0 = 1
    SELECTED = 2
    """For SELECT: b if a is not zero, else s0."""
    AFFINE = 3
    """For AFFINE_SELECT: a if the sign of the element's index is one of `signs`, else s0."""
    REPLACED = 4
    """For MATCH_REPLACE8: s0 if the search hits, else a."""
    LARGEST = 5
    FOUND = 6
    GIVEN = 7
    """The lane's input `given`, a word from the block."""


class Other(enum.Enum, shape=unsigned(2)):
    """Second operand of op0, the operation of stage 1."""

    S0 = 0
    B = 1
    A = 2
    RUNNING = 3
    """The running result of op1."""


class Second(enum.Enum, shape=unsigned(2)):
    """Word that is sent to stage 2 with the result of op0."""

    S1 = 0
    B = 1
    S0 = 2


class Operate(data.Struct):
    """Control of stage 1, which computes op0(first, other).

    Fields:
        unit: unit that computes a slow op0.
        reverse: compute op0(other, first) instead.
        signs: signs of the element's index for which `a` is selected; bit 0 negative, bit 1 zero, bit 2 positive.
        keep: write no result if the first operand is s0.
        search_b: the search compares the word `b`, else the word `a`.
        number, position: inputs of the search.
    """

    op: Op
    unit: Unit
    integer: unsigned(1)
    uint32: unsigned(1)
    first: First
    other: Other
    reverse: unsigned(1)
    second: Second
    signs: unsigned(3)
    keep: unsigned(1)
    search_b: unsigned(1)
    number: range(VALUES8)
    position: unsigned(POSITION_BITS)


class Events(data.Struct):
    """Events of stage 1 in this cycle. `divide`, `power`: the divider, the power unit starts a slow op0."""

    probe: Probe
    sample: Sample
    divide: unsigned(1)
    power: unsigned(1)


class Source(enum.Enum, shape=unsigned(2)):
    """Operand of op1, the operation of stage 2."""

    RESULT = 0
    """The result of op0."""
    RUNNING = 1
    """The running result of op1."""
    SECOND = 2


class Chain(data.Struct):
    """Control of stage 2, which computes op1(a, b).

    Fields:
        slow: the result of op0 is an output of the slow unit `unit`, not of the ALU.
        pass_second: send the word that `Second` selected to stage 3.
    """

    op: Op
    integer: unsigned(1)
    uint32: unsigned(1)
    a: Source
    b: Source
    slow: unsigned(1)
    unit: Unit
    pass_second: unsigned(1)


class LaneTurns(data.Struct):
    """Index of the partition that is processed in stage 1 (`operate`), stage 2 (`chain`) and stage 3 (`finish`)."""

    operate: unsigned(2)
    chain: unsigned(2)
    finish: unsigned(2)


class Finish(data.Struct):
    """Control of stage 3, which selects op1's result, unless a field selects another.

    Fields:
        slow: select the result of a slow op1, from the unit `unit`.
        reduced: select the result of op0, because op1 computes the running result.
        statistics: select the output `number` of the statistics unit.
        negate: invert the sign of the result, in INT32 if `integer`, else in FP32.
    """

    slow: unsigned(1)
    unit: Unit
    reduced: unsigned(1)
    statistics: unsigned(1)
    number: unsigned(3)
    negate: unsigned(1)
    integer: unsigned(1)


class Cast(data.Struct):
    """Control of stage 4, the cast to the output format.

    `integer`: the value to cast is INT32, or UINT32 if `uint32` is set; else FP32.
    """

    dtype: FormatCode
    integer: unsigned(1)
    uint32: unsigned(1)
    stochastic: unsigned(1)
    dropout: unsigned(1)


class Decoded(data.Struct):
    """Control words of a step for the stages 1 to 4."""

    operate: Operate
    events: Events
    chain: Chain
    finish: Finish
    cast: Cast
