"""Decoder of a vector step to the control shared by all lanes of a block."""

from amaranth import Module, Mux, Signal, Value

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.vector.control import Decoded, First, Load, OpcodeEntry, Other, Second, Source, Unit
from neuroncore_rtl.spec.formats import FORMATS, NARROW_FLOATS
from neuroncore_rtl.spec.isa import VECTOR_OPCODES
from neuroncore_rtl.spec.isa.alu import COMPARISONS, SLOW, AluOp
from neuroncore_rtl.spec.isa.elementwise import MOVES, uses

__all__ = ["decode_entry", "decode_opcode", "slow_op0", "slow_op1"]

_UNSIGNED = tuple(fmt.code for fmt in FORMATS.values() if not fmt.is_float and not fmt.signed)
_NARROW = tuple(fmt.code for fmt in NARROW_FLOATS)

_UNITS = {Op.POWER: Unit.POWER, Op.MOD: Unit.MOD, Op.FMOD: Unit.FMOD}
"""Unit of each slow operation; all others use the divider's quotient."""

_SIGNS = {
    AluOp.IS_EQUAL: 0b010,
    AluOp.NOT_EQUAL: 0b101,
    AluOp.IS_GT: 0b100,
    AluOp.IS_GE: 0b110,
    AluOp.IS_LT: 0b001,
    AluOp.IS_LE: 0b011,
}


def _uses(opcode, name: str) -> Value:
    users = (o for o in VECTOR_OPCODES if name in uses({"opcode": o}))
    return opcode.as_value().matches(*sorted(map(int, users)))


def _is_slow(op) -> Value:
    return op.as_value().matches(*sorted(map(int, SLOW)))


def _unit(op) -> Value:
    unit = Value.cast(Unit.QUOTIENT)
    for operation, own in _UNITS.items():
        unit = Mux(op == operation, own, unit)
    return unit


def slow_op0(fields) -> Value:
    """Return whether the first operation of an instruction or step needs a slow unit."""
    return (_uses(fields.opcode, "op0") & _is_slow(fields.op0)) | (fields.opcode == ElementwiseOpcode.RECIPROCAL)


def slow_op1(fields) -> Value:
    """Return whether the second operation of an instruction or step needs a slow unit."""
    return _uses(fields.opcode, "op1") & _is_slow(fields.op1)


def decode_entry(m: Module, step) -> tuple[Signal, Signal]:
    """Return combinational signals with the `OpcodeEntry` and the `Load` of a step."""
    entry, load = Signal(OpcodeEntry), Signal(Load)
    of_a = Signal()
    m.d.comb += [
        entry.iota.eq(step.opcode == ElementwiseOpcode.IOTA),
        entry.a_dtype.eq(Mux(entry.iota, FormatCode.INT32, step.a_dtype)),
        entry.b_dtype.eq(step.b_dtype),
        entry.odd.eq(
            step.opcode.as_value().matches(*sorted(map(int, MOVES)))
            & Value.cast(step.dst_dtype).matches(*_NARROW)
            & ~step.stochastic
        ),
        # A predicate and a probability are FP32 in any arithmetic.
        of_a.eq(
            ((step.opcode == ElementwiseOpcode.SELECT) & (step.phase == Phase.ELEMENT))
            | ((step.opcode == ElementwiseOpcode.DROPOUT) & (step.phase == Phase.LOAD_S0))
        ),
        load.a_integer.eq(step.integer & ~of_a),
        load.b_integer.eq(step.integer),
        load.load0.eq(step.phase == Phase.LOAD_S0),
        load.load1.eq(step.phase == Phase.LOAD_S1),
        load.immediate0.eq(~step.pointer0),
        load.immediate1.eq(~step.pointer1),
    ]
    return entry, load


def decode_opcode(m: Module, step, word_of_set: Value) -> Signal:
    """Return a combinational signal with the `Decoded` of a step.

    Arguments:
        m: the module.
        step: a `hdl.elementwise.step.ElementwiseStep`.
        word_of_set: index of the element in a BN_AGGR set (count, mean, sum of squares).
    """
    decoder = _Decoder(m, step)
    m.d.comb += decoder.common()
    decoder.slow_operations()
    with m.Switch(step.opcode):
        with m.Case(ElementwiseOpcode.MEMSET):
            m.d.comb += decoder.operate.first.eq(First.S0)
        with m.Case(ElementwiseOpcode.TENSOR_TENSOR):
            m.d.comb += decoder.operate.other.eq(Other.B)
        with m.Case(ElementwiseOpcode.TENSOR_SCALAR):
            m.d.comb += decoder.chained(Second.S1)
        with m.Case(ElementwiseOpcode.SCALAR_TENSOR_TENSOR):
            m.d.comb += decoder.chained(Second.B)
        with m.Case(ElementwiseOpcode.TENSOR_SCALAR_REDUCE):
            decoder.scalar_reduce()
        with m.Case(ElementwiseOpcode.TENSOR_REDUCE):
            m.d.comb += decoder.reduce()
        with m.Case(ElementwiseOpcode.TENSOR_TENSOR_SCAN):
            m.d.comb += decoder.scan()
        with m.Case(ElementwiseOpcode.BN_STATS):
            m.d.comb += decoder.statistics()
        with m.Case(ElementwiseOpcode.BN_AGGR):
            m.d.comb += decoder.aggregate(word_of_set)
        with m.Case(ElementwiseOpcode.RECIPROCAL):
            m.d.comb += [decoder.operate.first.eq(First.GIVEN), decoder.operate.other.eq(Other.A)]
        with m.Case(ElementwiseOpcode.SELECT):
            m.d.comb += [decoder.operate.first.eq(First.SELECTED), decoder.operate.keep.eq(step.keep)]
        with m.Case(ElementwiseOpcode.AFFINE_SELECT):
            decoder.affine_select()
        with m.Case(ElementwiseOpcode.TRANSPOSE):
            m.d.comb += decoder.transpose()
        with m.Case(ElementwiseOpcode.MAX8):
            m.d.comb += [decoder.events.probe.insert.eq(decoder.element), decoder.operate.first.eq(First.LARGEST)]
        with m.Case(ElementwiseOpcode.FIND_INDEX8, ElementwiseOpcode.MATCH_REPLACE8):
            decoder.search()
        with m.Case(ElementwiseOpcode.DROPOUT):
            m.d.comb += decoder.dropout()
        with m.Default():
            pass
    return decoder.decoded


class _Decoder:
    """Logic that derives the control word `decoded` of a step.

    Each method handles an opcode or a kind of opcode. It returns the assignments that differ from the default control,
    or adds conditional ones to the module.
    """

    def __init__(self, m: Module, step):
        self._m = m
        self._step = step
        self.decoded = Signal(Decoded)
        self.operate, self.events = self.decoded.operate, self.decoded.events
        self._chain, self._finish, self._cast = self.decoded.chain, self.decoded.finish, self.decoded.cast
        self.element, self._result = Signal(name="element"), Signal(name="result")

    def common(self):
        step = self._step
        return [
            self.element.eq(step.phase == Phase.ELEMENT),
            self._result.eq(step.phase == Phase.RESULT),
            self.operate.integer.eq(step.integer),
            self.operate.uint32.eq(step.uint32),
            self.operate.number.eq(step.number),
            self.operate.position.eq(step.position),
            self._chain.integer.eq(step.integer),
            self._chain.uint32.eq(step.uint32),
            self._finish.integer.eq(step.integer),
            self._cast.dtype.eq(step.dst_dtype),
            self._cast.integer.eq(step.integer),
            self._cast.uint32.eq(step.uint32),
            self._cast.stochastic.eq(step.stochastic),
        ]

    def slow_operations(self) -> None:
        m, step, chain = self._m, self._step, self._chain
        with m.If(slow_op0(step)):
            # A RESULT step stalls as long as an element's step does, or it would overtake the elements.
            m.d.comb += [
                chain.slow.eq(1),
                chain.unit.eq(Mux(step.opcode == ElementwiseOpcode.RECIPROCAL, Unit.QUOTIENT, _unit(step.op0))),
                self.operate.unit.eq(chain.unit),
                self.events.divide.eq(self.element & (chain.unit != Unit.POWER)),
                self.events.power.eq(self.element & (chain.unit == Unit.POWER)),
            ]
        with m.Elif(_uses(step.opcode, "op0")):
            m.d.comb += self.operate.op.eq(step.op0)
        with m.If(slow_op1(step)):
            m.d.comb += [self._finish.slow.eq(1), self._finish.unit.eq(_unit(step.op1))]

    def chained(self, second: Second):
        """Return the assignments for op1(op0(first, other), second).

        The instruction may reverse the operands of each.
        """
        step, chain = self._step, self._chain
        return [
            self.operate.reverse.eq(step.reverse0),
            self.operate.second.eq(second),
            chain.op.eq(Mux(self._finish.slow, Op.BYPASS, step.op1)),
            chain.a.eq(Mux(step.reverse1, Source.SECOND, Source.RESULT)),
            chain.b.eq(Mux(step.reverse1, Source.RESULT, Source.SECOND)),
        ]

    def _reduction(self, op):
        first, chain = self._step.first, self._chain
        return [
            chain.op.eq(Mux(first, Op.BYPASS, op)),
            chain.a.eq(Mux(first, Source.RESULT, Source.RUNNING)),
            chain.b.eq(Source.RESULT),
        ]

    def scalar_reduce(self) -> None:
        m = self._m
        m.d.comb += self.operate.reverse.eq(self._step.reverse0)
        with m.If(self.element):
            m.d.comb += [self._reduction(self._step.op1), self._finish.reduced.eq(1)]
        with m.Else():
            m.d.comb += self._chain.a.eq(Source.RUNNING)

    def reduce(self):
        step = self._step
        return [self.operate.op.eq(Op.BYPASS), self._reduction(step.op0), self._finish.negate.eq(step.negate)]

    def scan(self):
        other = Mux(self._step.first, Other.S0, Other.RUNNING)
        return [self.operate.other.eq(other), self.chained(Second.B)]

    def statistics(self):
        step, sample, finish = self._step, self.events.sample, self._finish
        return [
            sample.update.eq(self.element),
            sample.odd.eq(step.position[0]),
            sample.first.eq(self.element & (step.position < 2)),
            self.operate.first.eq(First.GIVEN),
            finish.statistics.eq((step.number != 0) & (step.number != 3)),
            finish.number.eq(step.number),
        ]

    def aggregate(self, word_of_set: Value):
        step, sample, finish = self._step, self.events.sample, self._finish
        return [
            sample.count.eq(self.element & (word_of_set == 0)),
            sample.mean.eq(self.element & (word_of_set == 1)),
            sample.m2.eq(self.element & (word_of_set == 2)),
            sample.first.eq(self.element & step.first),
            sample.variance.eq(self._result & (step.number == 1)),
            self._chain.slow.eq(sample.variance),
            finish.statistics.eq(step.number == 0),
            finish.number.eq(1),
        ]

    def affine_select(self) -> None:
        m = self._m
        m.d.comb += [self.operate.op.eq(Op.BYPASS), self.operate.first.eq(First.AFFINE)]
        with m.Switch(self._step.op0):
            for op in COMPARISONS:
                with m.Case(Op(op.value)):
                    m.d.comb += self.operate.signs.eq(_SIGNS[op])
            with m.Default():
                pass

    def transpose(self):
        cast = self._cast
        return [self.operate.first.eq(First.GIVEN), cast.dtype.eq(FormatCode.INT32), cast.integer.eq(1)]

    def search(self) -> None:
        m, probe = self._m, self.events.probe
        m.d.comb += [
            probe.load.eq(self._step.phase == Phase.LOAD_VALUE),
            probe.match.eq(self.element),
            self.operate.search_b.eq(probe.load),
            self.operate.first.eq(First.REPLACED),
        ]
        with m.If(self._step.opcode == ElementwiseOpcode.FIND_INDEX8):
            m.d.comb += [
                self.operate.first.eq(First.FOUND),
                self._cast.integer.eq(1),
                self._cast.uint32.eq(Value.cast(self._step.dst_dtype).matches(*_UNSIGNED)),
            ]

    def dropout(self):
        return [self.operate.second.eq(Second.S0), self._chain.pass_second.eq(1), self._cast.dropout.eq(1)]
