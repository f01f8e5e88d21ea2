"""The ALU of a vector lane: one operation of `spec.isa.alu` in FP32, INT32 or UINT32 per cycle.

Order is one comparison for every arithmetic, of signed integers: UINT32 has its top bit inverted, and a float is read
as an integer whose bits below the sign are inverted if it is negative, which puts -0 below +0 as maximum and minimum
want it; comparisons make the two equal.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.multiply import Fp32Multiplier
from neuroncore_rtl.hdl.elementwise.instruction import Op
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Alu"]

_ONE = FP32.bias << FP32.mantissa_bits
_BY_MAGNITUDE = tuple(op.value for op in (Op.ABSOLUTE_MAX, Op.LARGER_MAGNITUDE, Op.SMALLER_MAGNITUDE))


class _Source(enum.Enum, shape=unsigned(2)):
    """The unit whose register holds the result."""

    LOGIC = 0
    ADDER = 1
    MULTIPLIER = 2


class Alu(wiring.Component):
    """out = op(a, b), `LATENCY` cycles later; one operation enters per cycle.

    FP32 rounds once, to nearest even; subnormals are kept, NaN results canonical (0x7FC00000) but for BYPASS, which
    passes every bit of a. Integers wrap around. A comparison or a logical operation gives 1.0 or 0.0, or the integers 1
    or 0. Comparisons with NaN are false, NOT_EQUAL is true; -0 equals +0. Bitwise operations and shifts look at the
    words, whatever the arithmetic. What is slow belongs to other units: of that, out means nothing.

    Ports:
        op: the operation.
        integer: 1 for integers, 0 for FP32. uint32: they are UINT32 (integer is 1 then), else INT32.
        a, b: operands.
        out: the result, by one multiplexer from the registers of the adder, the multiplier and the rest.
    """

    LATENCY = 1
    """Cycles from the operands to out."""

    op: In(Op)
    integer: In(1)
    uint32: In(1)
    a: In(32)
    b: In(32)
    out: Out(32)

    latency = LATENCY

    def elaborate(self, platform):
        m = Module()
        m.submodules.adder = adder = Fp32Adder(self.LATENCY)
        m.submodules.multiplier = multiplier = Fp32Multiplier(self.LATENCY)
        subtract = Signal()
        m.d.comb += [
            subtract.eq(self.op == Op.SUBTRACT),
            adder.a.eq(self.a),
            adder.b.eq(Cat(self.b[:31], self.b[31] ^ subtract)),
            multiplier.a.eq(self.a),
            multiplier.b.eq(self.b),
        ]
        source, logic = self._logic(m, subtract)
        late_source, late_logic = Signal(_Source, reset_less=True), Signal(32, reset_less=True)
        m.d.sync += [late_source.eq(source), late_logic.eq(logic)]
        with m.Switch(late_source):
            with m.Case(_Source.ADDER):
                m.d.comb += self.out.eq(adder.out)
            with m.Case(_Source.MULTIPLIER):
                m.d.comb += self.out.eq(multiplier.out)
            with m.Default():
                m.d.comb += self.out.eq(late_logic)
        return m

    def _logic(self, m: Module, subtract: Value) -> tuple[Signal, Signal]:
        """Return which unit has the result, and what the rest makes of the operands."""
        a, b = self.a, self.b
        source, logic = Signal(_Source), Signal(32)
        words, truths = self._compare(m)
        far = Signal()
        m.d.comb += far.eq(b[5:].any())
        words |= self._integral(m) | {
            Op.BITWISE_AND: a & b,
            Op.BITWISE_OR: a | b,
            Op.BITWISE_XOR: a ^ b,
            Op.LOGICAL_SHIFT_LEFT: Mux(far, 0, (a << b[:5])[:32]),
            Op.LOGICAL_SHIFT_RIGHT: Mux(far, 0, a >> b[:5]),
        }
        truth, is_truth = Signal(), Signal()
        with m.Switch(self.op):
            for operation, value in words.items():
                with m.Case(operation):
                    m.d.comb += logic.eq(value)
            with m.Case(Op.ADD, Op.SUBTRACT):
                m.d.comb += [
                    source.eq(Mux(self.integer, _Source.LOGIC, _Source.ADDER)),
                    logic.eq(Mux(subtract, a - b, a + b)),
                ]
            with m.Case(Op.MULTIPLY):
                m.d.comb += [
                    source.eq(Mux(self.integer, _Source.LOGIC, _Source.MULTIPLIER)),
                    logic.eq((a * b)[:32]),
                ]
            for operation, value in truths.items():
                with m.Case(operation):
                    m.d.comb += [truth.eq(value), is_truth.eq(1)]
            with m.Default():
                pass
        with m.If(is_truth):
            m.d.comb += logic.eq(Mux(truth, Mux(self.integer, 1, _ONE), 0))
        return source, logic

    def _integral(self, m: Module) -> dict[Op, Value]:
        """Return the words of the operations that round a to an integer.

        Where a has places after the point, ones are added there to round up, and then they are cut off.
        """
        a = Fp32(self.a)
        whole, up = Signal(), Signal()
        places, magnitude, rounded = Signal(31), Signal(31), Signal(32)
        m.d.comb += [
            whole.eq(a.field >= FP32.bias + FP32.mantissa_bits),
            up.eq(Mux(a.sign, self.op == Op.FLOOR, self.op == Op.CEIL)),
            places.eq(Const((1 << FP32.mantissa_bits) - 1) >> (a.field - FP32.bias)[:5]),
        ]
        with m.If(a.nan):
            m.d.comb += rounded.eq(FP32.nan)
        with m.Else():
            with m.If(whole):
                m.d.comb += magnitude.eq(self.a)
            with m.Elif(a.field < FP32.bias):
                m.d.comb += magnitude.eq(Mux(up & ~a.zero, _ONE, 0))
            with m.Else():
                m.d.comb += magnitude.eq((self.a[:31] + Mux(up, places, 0)) & ~places)
            m.d.comb += rounded.eq(Cat(magnitude, a.sign))
        return dict.fromkeys((Op.FLOOR, Op.CEIL, Op.TRUNC), rounded)

    def _compare(self, m: Module) -> tuple[dict[Op, Value], dict[Op, Value]]:
        """Return the words, and the truths, of the operations that compare."""
        a, b = Fp32(self.a), Fp32(self.b)
        unordered, a_zero, b_zero, equal, less = (
            Signal(name=name) for name in ("unordered", "a_zero", "b_zero", "equal", "less")
        )
        x, y, below = self._ordered(m)
        m.d.comb += [
            unordered.eq(~self.integer & ((self.a[:31] > FP32.infinity) | (self.b[:31] > FP32.infinity))),
            a_zero.eq(a.zero & ~(self.integer & a.sign)),
            b_zero.eq(b.zero & ~(self.integer & b.sign)),
            equal.eq(((self.a == self.b) | (a_zero & b_zero)) & ~unordered),
            less.eq(below & ~(a_zero & b_zero) & ~unordered),
        ]
        larger = Mux(unordered, FP32.nan, Mux(below, y, x))
        smaller = Mux(unordered, FP32.nan, Mux(below, x, y))
        # What is not in order leaves b.
        b_word = Mux(~self.integer & b.nan, FP32.nan, self.b)
        words = {
            Op.BYPASS: self.a,
            Op.MAX: larger,
            Op.MIN: smaller,
            Op.ABSOLUTE_MAX: larger,
            Op.LARGER_MAGNITUDE: Mux(unordered | below | (x == y), b_word, self.a),
            Op.SMALLER_MAGNITUDE: Mux(below & ~unordered, self.a, b_word),
        }
        truths = {
            Op.IS_EQUAL: equal,
            Op.NOT_EQUAL: ~equal,
            Op.IS_GT: ~(less | equal | unordered),
            Op.IS_GE: ~(less | unordered),
            Op.IS_LT: less,
            Op.IS_LE: less | equal,
            Op.LOGICAL_AND: ~a_zero & ~b_zero,
            Op.LOGICAL_OR: ~a_zero | ~b_zero,
            Op.LOGICAL_XOR: a_zero ^ b_zero,
        }
        return words, truths

    def _ordered(self, m: Module):
        """Return the operands, or their magnitudes where these decide, and whether the first is below the second."""
        operands, keys = [], []
        by_magnitude = Signal()
        m.d.comb += by_magnitude.eq(Value.cast(self.op).matches(*_BY_MAGNITUDE))
        for name, word in (("x", self.a), ("y", self.b)):
            magnitude = Signal(32, name=f"{name}_magnitude")
            operand = Signal(32, name=f"{name}_operand")
            key = Signal(32, name=f"{name}_key")
            m.d.comb += [
                magnitude.eq(Mux(self.integer, Mux(word[31] & ~self.uint32, -word, word), word[:31])),
                operand.eq(Mux(by_magnitude, magnitude, word)),
                key.eq(operand ^ Cat((operand[31] & ~self.integer).replicate(31), self.uint32)),
            ]
            operands.append(operand)
            keys.append(key)
        below = Signal()
        m.d.comb += below.eq(keys[0].as_signed() < keys[1].as_signed())
        return *operands, below
