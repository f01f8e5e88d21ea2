"""What a vector lane is told, stage by stage: a step, decoded once for all lanes of a block.

Each structure but :class:`Decoded` belongs to a stage of :class:`hdl.vector.lane.VectorLane`, where it arrives with the
data.
"""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import Op, Opcode
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.vector.search import POSITION_BITS, Probe
from neuroncore_rtl.hdl.vector.stats import Sample
from neuroncore_rtl.spec.isa import VECTOR_OPCODES
from neuroncore_rtl.spec.isa.alu import COMPARISONS, AluOp
from neuroncore_rtl.spec.isa.elementwise import VALUES8, uses

__all__ = [
    "Cast", "Chain", "Decoded", "Entry", "Events", "Finish", "First", "Operate", "Other", "Second", "Source", "decode",
    "decode_entry", "slow_op0", "slow_op1",
]  # fmt: skip


class Entry(data.Struct):
    """Stage 0. iota: the element's index takes the place of a. a_integer, b_integer: widen to INT32. load0, load1: a is
    a scalar. immediate0, immediate1: the scalar is in the step."""

    iota: unsigned(1)
    a_dtype: FormatCode
    b_dtype: FormatCode
    a_integer: unsigned(1)
    b_integer: unsigned(1)
    load0: unsigned(1)
    load1: unsigned(1)
    immediate0: unsigned(1)
    immediate1: unsigned(1)


class First(enum.Enum, shape=unsigned(3)):
    """The first operand of op0."""

    A = 0
    S0 = 1
    SELECTED = 2
    """b where a is not zero, else s0."""
    AFFINE = 3
    """a where the index has one of `signs`, else s0."""
    REPLACED = 4
    """s0 where the search hits, else a."""
    LARGEST = 5
    FOUND = 6
    GIVEN = 7
    """A word from the block."""


class Other(enum.Enum, shape=unsigned(2)):
    """The second operand of op0."""

    S0 = 0
    B = 1
    A = 2
    RUNNING = 3
    """The result of op1 so far."""


class Second(enum.Enum, shape=unsigned(2)):
    """What accompanies the result of op0."""

    S1 = 0
    B = 1
    S0 = 2


class Operate(data.Struct):
    """Stage 1, op0(first, other). reverse: op0(other, first). signs: of an index: negative, zero, positive. keep: where
    `first` is s0, nothing is written. search_b: the search looks at b; number, position: for it."""

    op: Op
    integer: unsigned(1)
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
    """Stage 1, what happens in this cycle. divide, power: a slow op0 starts."""

    probe: Probe
    sample: Sample
    divide: unsigned(1)
    power: unsigned(1)


class Source(enum.Enum, shape=unsigned(2)):
    """An operand of op1."""

    RESULT = 0
    """Of op0."""
    RUNNING = 1
    """The result of op1 so far."""
    SECOND = 2


class Chain(data.Struct):
    """Stage 2, op1(a, b). slow, power: the result of op0 comes from a slow unit, that of powers. pass_second:
    `Second` goes on, not the result of op0."""

    op: Op
    integer: unsigned(1)
    a: Source
    b: Source
    slow: unsigned(1)
    power: unsigned(1)
    pass_second: unsigned(1)


class Finish(data.Struct):
    """Stage 3, what the result is. slow, power: that of a slow op1, the power. reduced: that of op0, as op1 reduces.
    statistics: their result `number`. negate: with the other sign, in INT32 if `integer`."""

    slow: unsigned(1)
    power: unsigned(1)
    reduced: unsigned(1)
    statistics: unsigned(1)
    number: unsigned(3)
    negate: unsigned(1)
    integer: unsigned(1)


class Cast(data.Struct):
    """Stage 4. integer: the result is INT32."""

    dtype: FormatCode
    integer: unsigned(1)
    stochastic: unsigned(1)
    dropout: unsigned(1)


class Decoded(data.Struct):
    """A step from stage 1 on."""

    operate: Operate
    events: Events
    chain: Chain
    finish: Finish
    cast: Cast


_SLOW = (Op.DIVIDE, Op.POWER)

_SIGNS = {
    AluOp.IS_EQUAL: 0b010,
    AluOp.NOT_EQUAL: 0b101,
    AluOp.IS_GT: 0b100,
    AluOp.IS_GE: 0b110,
    AluOp.IS_LT: 0b001,
    AluOp.IS_LE: 0b011,
}


def _uses(opcode, name: str):
    users = (o for o in VECTOR_OPCODES if name in uses({"opcode": o}))
    return opcode.as_value().matches(*sorted(map(int, users)))


def _is_slow(op):
    return op.as_value().matches(*(slow.value for slow in _SLOW))


def slow_op0(fields):
    """Return whether an instruction's or a step's first operation takes one of the slow units."""
    return (_uses(fields.opcode, "op0") & _is_slow(fields.op0)) | (fields.opcode == Opcode.RECIPROCAL)


def slow_op1(fields):
    """Return whether an instruction's or a step's second operation takes one of the slow units."""
    return _uses(fields.opcode, "op1") & _is_slow(fields.op1)


def decode_entry(m: Module, step) -> Signal:
    """Return a combinational signal with the :class:`Entry` of a step."""
    entry = Signal(Entry)
    of_a = Signal()
    m.d.comb += [
        entry.iota.eq(step.opcode == Opcode.IOTA),
        entry.a_dtype.eq(Mux(entry.iota, FormatCode.INT32, step.a_dtype)),
        entry.b_dtype.eq(step.b_dtype),
        # A predicate and a probability are FP32, whatever the arithmetic of the others.
        of_a.eq(
            ((step.opcode == Opcode.SELECT) & (step.phase == Phase.ELEMENT))
            | ((step.opcode == Opcode.DROPOUT) & (step.phase == Phase.LOAD_S0))
        ),
        entry.a_integer.eq(step.integer & ~of_a),
        entry.b_integer.eq(step.integer),
        entry.load0.eq(step.phase == Phase.LOAD_S0),
        entry.load1.eq(step.phase == Phase.LOAD_S1),
        entry.immediate0.eq(~step.pointer0),
        entry.immediate1.eq(~step.pointer1),
    ]
    return entry


def decode(m: Module, step, word_of_set) -> Signal:
    """Return a combinational signal with the :class:`Decoded` of a step.

    Arguments:
        m: the module.
        step: :class:`hdl.elementwise.step.Step`.
        word_of_set: which of the three words of a set BN_AGGR is at.
    """
    decoded = Signal(Decoded)
    operate, events, chain, finish, cast = (decoded[name] for name in ("operate", "events", "chain", "finish", "cast"))
    element, result = Signal(), Signal()
    m.d.comb += [
        element.eq(step.phase == Phase.ELEMENT),
        result.eq(step.phase == Phase.RESULT),
        operate.integer.eq(step.integer),
        operate.number.eq(step.number),
        operate.position.eq(step.position),
        chain.integer.eq(step.integer),
        finish.integer.eq(step.integer),
        cast.dtype.eq(step.dst_dtype),
        cast.integer.eq(step.integer),
        cast.stochastic.eq(step.stochastic),
    ]
    with m.If(slow_op0(step)):
        # A RESULT step waits with the elements, so as not to overtake them.
        m.d.comb += [
            chain.slow.eq(1),
            chain.power.eq((step.opcode != Opcode.RECIPROCAL) & (step.op0 == Op.POWER)),
            events.divide.eq(element & ~chain.power),
            events.power.eq(element & chain.power),
        ]
    with m.Elif(_uses(step.opcode, "op0")):
        m.d.comb += operate.op.eq(step.op0)
    with m.If(slow_op1(step)):
        m.d.comb += [finish.slow.eq(1), finish.power.eq(step.op1 == Op.POWER)]

    def chained(second):
        return [
            operate.reverse.eq(step.reverse0),
            operate.second.eq(second),
            chain.op.eq(Mux(finish.slow, Op.BYPASS, step.op1)),
            chain.a.eq(Mux(step.reverse1, Source.SECOND, Source.RESULT)),
            chain.b.eq(Mux(step.reverse1, Source.RESULT, Source.SECOND)),
        ]

    def reduction(op):
        return [
            chain.op.eq(Mux(step.first, Op.BYPASS, op)),
            chain.a.eq(Mux(step.first, Source.RESULT, Source.RUNNING)),
            chain.b.eq(Source.RESULT),
        ]

    with m.Switch(step.opcode):
        with m.Case(Opcode.MEMSET):
            m.d.comb += operate.first.eq(First.S0)
        with m.Case(Opcode.TENSOR_TENSOR):
            m.d.comb += operate.other.eq(Other.B)
        with m.Case(Opcode.TENSOR_SCALAR):
            m.d.comb += chained(Second.S1)
        with m.Case(Opcode.SCALAR_TENSOR_TENSOR):
            m.d.comb += chained(Second.B)
        with m.Case(Opcode.TENSOR_SCALAR_REDUCE):
            m.d.comb += operate.reverse.eq(step.reverse0)
            with m.If(element):
                m.d.comb += [reduction(step.op1), finish.reduced.eq(1)]
            with m.Else():
                m.d.comb += chain.a.eq(Source.RUNNING)
        with m.Case(Opcode.TENSOR_REDUCE):
            m.d.comb += [operate.op.eq(Op.BYPASS), reduction(step.op0), finish.negate.eq(step.negate)]
        with m.Case(Opcode.TENSOR_TENSOR_SCAN):
            m.d.comb += [operate.other.eq(Mux(step.first, Other.S0, Other.RUNNING)), chained(Second.B)]
        with m.Case(Opcode.BN_STATS):
            m.d.comb += [
                events.sample.update.eq(element),
                events.sample.odd.eq(step.position[0]),
                events.sample.first.eq(element & (step.position < 2)),
                operate.first.eq(First.GIVEN),
                finish.statistics.eq((step.number != 0) & (step.number != 3)),
                finish.number.eq(step.number),
            ]
        with m.Case(Opcode.BN_AGGR):
            m.d.comb += [
                events.sample.count.eq(element & (word_of_set == 0)),
                events.sample.mean.eq(element & (word_of_set == 1)),
                events.sample.m2.eq(element & (word_of_set == 2)),
                events.sample.first.eq(element & step.first),
                events.sample.variance.eq(result & (step.number == 1)),
                chain.slow.eq(events.sample.variance),
                finish.statistics.eq(step.number == 0),
                finish.number.eq(1),
            ]
        with m.Case(Opcode.RECIPROCAL):
            m.d.comb += [operate.first.eq(First.GIVEN), operate.other.eq(Other.A)]
        with m.Case(Opcode.SELECT):
            m.d.comb += [operate.first.eq(First.SELECTED), operate.keep.eq(step.keep)]
        with m.Case(Opcode.AFFINE_SELECT):
            m.d.comb += [operate.op.eq(Op.BYPASS), operate.first.eq(First.AFFINE)]
            with m.Switch(step.op0):
                for op in COMPARISONS:
                    with m.Case(Op(op.value)):
                        m.d.comb += operate.signs.eq(_SIGNS[op])
                with m.Default():
                    pass
        with m.Case(Opcode.TRANSPOSE):
            m.d.comb += [operate.first.eq(First.GIVEN), cast.dtype.eq(FormatCode.INT32), cast.integer.eq(1)]
        with m.Case(Opcode.MAX8):
            m.d.comb += [events.probe.insert.eq(element), operate.first.eq(First.LARGEST)]
        with m.Case(Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8):
            m.d.comb += [
                events.probe.load.eq(step.phase == Phase.LOAD_VALUE),
                events.probe.match.eq(element),
                operate.search_b.eq(events.probe.load),
                operate.first.eq(First.REPLACED),
            ]
            with m.If(step.opcode == Opcode.FIND_INDEX8):
                m.d.comb += [operate.first.eq(First.FOUND), cast.integer.eq(1)]
        with m.Case(Opcode.DROPOUT):
            m.d.comb += [operate.second.eq(Second.S0), chain.pass_second.eq(1), cast.dropout.eq(1)]
        with m.Default():
            pass
    return decoded
