"""ALU of a vector lane: one operation of `spec.isa.alu` in FP32, INT32 or UINT32 per cycle.

One comparison of signed integers gives the order in every arithmetic. Its result is inverted for UINT32 if exactly one
operand has the top bit set, and for two negative floats. It orders -0 below +0, as maximum and minimum need;
comparisons treat both as equal.

Integers are multiplied by the significand multiplier.
"""

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.elementwise.instruction import Op
from neuroncore_rtl.spec.formats import FP32

__all__ = ["NEGATIVE_ZERO", "Fused", "Sum", "VectorAlu"]

_ONE = FP32.bias << FP32.mantissa_bits

NEGATIVE_ZERO = 1 << 31
"""Neutral element of addition: as the addend it makes a multiply-add return the rounded product."""

_BY_MAGNITUDE = tuple(op.value for op in (Op.ABSOLUTE_MAX, Op.LARGER_MAGNITUDE, Op.SMALLER_MAGNITUDE))
_TRUTHS = (
    *(Op.IS_EQUAL, Op.NOT_EQUAL, Op.IS_GT, Op.IS_GE, Op.IS_LT, Op.IS_LE),
    *(Op.LOGICAL_AND, Op.LOGICAL_OR, Op.LOGICAL_XOR),
)
_INTEGRAL = tuple(op.value for op in (Op.FLOOR, Op.CEIL, Op.TRUNC))


class Sum(data.Struct):
    """Request to an ALU for a + b in FP32; `takes` marks a valid request."""

    takes: unsigned(1)
    a: unsigned(32)
    b: unsigned(32)


class Fused(data.Struct):
    """Request to an ALU for a * b + c in FP32, rounded once; `takes` marks a valid request."""

    takes: unsigned(1)
    a: unsigned(32)
    b: unsigned(32)
    c: unsigned(32)


class _Source(enum.Enum, shape=unsigned(2)):
    """Unit of the ALU with the result in its output register."""

    LOGIC = 0
    ADDER = 1
    MULTIPLIER = 2


class VectorAlu(wiring.Component):
    """ALU: out = op(a, b). Throughput: one operation per cycle.

    FP32 operations round once, to nearest even. Subnormals are kept; NaN results are canonical (0x7FC00000), except
    that BYPASS passes every bit. Integers wrap on overflow. Comparisons and logical operations give 1.0 or 0.0, or the
    integers 1 or 0. With NaN only NOT_EQUAL is true; -0 equals +0. Bitwise operations and shifts use the words in any
    arithmetic. For the slow units' operations out is undefined.

    Arguments:
        latency: cycles from the operands to out, 1 to 6. With 1 there is an adder beside the multiply-add; otherwise
            the multiply-add also adds.

    Ports:
        op: the operation.
        integer: 1 for integers, 0 for FP32.
        uint32: with integer, UINT32 instead of INT32.
        a, b: operands.
        out: the result, after registers and one multiplexer.
        sum, fused: requests of the statistics (`Sum`, `Fused`), while op is no addition, subtraction or
            multiplication; with a latency above 1 only one of them per cycle.
        summed, multiplied: results of the requests `sum` and `fused`, `latency` cycles later.
    """

    op: In(Op)
    integer: In(1)
    uint32: In(1)
    a: In(32)
    b: In(32)
    out: Out(32)
    sum: In(Sum)
    fused: In(Fused)
    summed: Out(32)
    multiplied: Out(32)

    def __init__(self, latency: int = 1):
        self.latency = latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiplier = multiplier = Fp32Fma(self.latency)
        subtract = Signal()
        m.d.comb += subtract.eq(self.op == Op.SUBTRACT)
        b_signed = Cat(self.b[:31], self.b[31] ^ subtract)
        sum_a, sum_b = (Mux(self.sum.takes, word, own) for word, own in ((self.sum.a, self.a), (self.sum.b, b_signed)))
        fused = self.fused
        product = [multiplier.a.eq(self.a), multiplier.b.eq(self.b), multiplier.c.eq(NEGATIVE_ZERO)]
        if self.latency == 1:
            m.submodules.adder = adder = Fp32Adder(1)
            m.d.comb += [adder.a.eq(sum_a), adder.b.eq(sum_b), *product, self.summed.eq(adder.out)]
        else:
            m.d.comb += [*product, self.summed.eq(multiplier.out)]
            with m.If(self.sum.takes | (self.op == Op.ADD) | subtract):
                m.d.comb += [multiplier.a.eq(sum_a), multiplier.b.eq(_ONE), multiplier.c.eq(sum_b)]
        with m.If(fused.takes):
            m.d.comb += [multiplier.a.eq(fused.a), multiplier.b.eq(fused.b), multiplier.c.eq(fused.c)]
        m.d.comb += [multiplier.integer.eq(self.integer & ~fused.takes), self.multiplied.eq(multiplier.out)]

        source, word = self._late(m, multiplier)
        with m.Switch(source):
            with m.Case(_Source.ADDER):
                m.d.comb += self.out.eq(self.summed)
            with m.Case(_Source.MULTIPLIER):
                m.d.comb += self.out.eq(multiplier.out)
            with m.Default():
                m.d.comb += self.out.eq(word)
        return m

    def _late(self, m: Module, multiplier: Fp32Fma) -> tuple[Value, Value]:
        staged = self.latency > 1
        names = ("op", "integer", "uint32", "a", "b")
        early = multiplier.product_latency - staged
        now = SimpleNamespace(**{name: delayed(m, getattr(self, name), early, f"now_{name}") for name in names})
        values = vars(now) | dict(zip("xy", _magnitudes(m, now), strict=True))
        now = SimpleNamespace(**{name: delayed(m, value, staged, f"then_{name}") for name, value in values.items()})
        # If two stages remain, the second selects the result.
        rest = self.latency - multiplier.product_latency
        cut = rest > 1
        values = _Logic(m, now).results() | {"product": multiplier.product}
        results = SimpleNamespace(**{name: delayed(m, value, cut, f"cut_{name}") for name, value in values.items()})
        source, word = _select_result(m, results)
        return delayed(m, source, rest - cut, "late_source"), delayed(m, word, rest - cut, "late_logic")


def _magnitudes(m: Module, now: SimpleNamespace) -> list[Signal]:
    operands = []
    by_magnitude = Signal()
    m.d.comb += by_magnitude.eq(Value.cast(now.op).matches(*_BY_MAGNITUDE))
    for name, word in (("x", now.a), ("y", now.b)):
        magnitude = Signal(32, name=f"{name}_magnitude")
        operand = Signal(32, name=f"{name}_operand")
        m.d.comb += [
            magnitude.eq(Mux(now.integer, Mux(word[31] & ~now.uint32, -word, word), word[:31])),
            operand.eq(Mux(by_magnitude, magnitude, word)),
        ]
        operands.append(operand)
    return operands


class _Logic:
    """Combinational logic of all operations except FP32 sums and products.

    Arguments:
        m: the module that receives the logic.
        now: inputs of this cycle: op, integer, uint32, a, b, and x, y (the operands, or their magnitudes).
    """

    def __init__(self, m: Module, now: SimpleNamespace):
        self._m = m
        self.op, self.integer, self.uint32, self.a, self.b = now.op, now.integer, now.uint32, now.a, now.b
        self.x, self.y = now.x, now.y

    def results(self) -> dict[str, Value]:
        m, a, b = self._m, self.a, self.b
        chosen, truths = self._compare()
        total, integral = self._total()
        bitwise, truth = Signal(32), Signal()
        with m.Switch(self.op):
            with m.Case(Op.BITWISE_AND):
                m.d.comb += bitwise.eq(a & b)
            with m.Case(Op.BITWISE_OR):
                m.d.comb += bitwise.eq(a | b)
            with m.Default():
                m.d.comb += bitwise.eq(a ^ b)
        with m.Switch(self.op):
            for operation, value in truths.items():
                with m.Case(operation):
                    m.d.comb += truth.eq(value)
        return {
            "op": self.op, "integer": self.integer, "a": a, "selected": chosen, "bitwise": bitwise,
            "shifted": self._shifted(), "total": total, "integral": integral, "truth": truth,
        }  # fmt: skip

    def _shifted(self) -> Signal:
        """Return a shifted by b places; a left shift is a right shift of the reversed bits."""
        m, a, b = self._m, self.a, self.b
        left, far = Signal(name="shifts_left"), Signal(name="far")
        word, right, shifted = (Signal(32, name=name) for name in ("to_shift", "shifted_right", "shifted"))
        m.d.comb += [
            left.eq(self.op == Op.LOGICAL_SHIFT_LEFT),
            far.eq(b[5:].any()),
            word.eq(Mux(left, a[::-1], a)),
            right.eq(Mux(far, 0, word >> b[:5])),
            shifted.eq(Mux(left, right[::-1], right)),
        ]
        return shifted

    def _total(self) -> tuple[Signal, Signal]:
        """Return two words: a + b or a - b of integers, and a rounded to an integral FP32 value.

        To round up, ones are added at a's fraction places; the fraction is then cleared.
        """
        m, word = self._m, self.a
        a = Fp32(word)
        rounds, subtract, up, small, whole = (
            Signal(name=name) for name in ("rounds", "subtracts", "up", "small", "whole")
        )
        places, addend, total, integral = (Signal(32, name=name) for name in ("places", "addend", "total", "integral"))
        m.d.comb += [
            rounds.eq(Value.cast(self.op).matches(*_INTEGRAL)),
            subtract.eq(self.op == Op.SUBTRACT),
            up.eq(Mux(a.sign, self.op == Op.FLOOR, self.op == Op.CEIL)),
            small.eq(a.field < FP32.bias),
            whole.eq(a.field >= FP32.bias + FP32.mantissa_bits),
            places.eq(Const((1 << FP32.mantissa_bits) - 1) >> (a.field - FP32.bias)[:5]),
            addend.eq(Mux(rounds, Mux(up, places, 0), self.b ^ subtract.replicate(32))),
            # An additional lowest bit carries into the sum.
            total.eq((Cat(subtract, word) + Cat(subtract, addend))[1:33]),
        ]
        with m.If(a.nan):
            m.d.comb += integral.eq(FP32.nan)
        with m.Elif(small):
            m.d.comb += integral.eq(Cat(Mux(up & ~a.zero, Const(_ONE, 31), 0), a.sign))
        with m.Else():
            m.d.comb += integral.eq(Mux(whole, word, total & ~places))
        return total, integral

    def _compare(self) -> tuple[Signal, dict[Op, Value]]:
        m, op, integer = self._m, self.op, self.integer
        a, b = Fp32(self.a), Fp32(self.b)
        unordered, b_nan, a_zero, b_zero, equal, less, takes_b = (
            Signal(name=name) for name in ("unordered", "b_nan", "a_zero", "b_zero", "equal", "less", "takes_b")
        )
        x, y, (below, same) = self.x, self.y, self._ordered()
        by_value, chosen, word = Signal(), Signal(32, name="chosen"), Signal(32, name="chosen_or_nan")
        m.d.comb += [
            b_nan.eq(~integer & b.nan),
            unordered.eq((~integer & a.nan) | b_nan),
            a_zero.eq(a.zero & ~(integer & a.sign)),
            b_zero.eq(b.zero & ~(integer & b.sign)),
            equal.eq((same | (a_zero & b_zero)) & ~unordered),
            less.eq(below & ~(a_zero & b_zero) & ~unordered),
            # Selection by magnitude returns the operand itself, and b if the pair is unordered.
            by_value.eq((op != Op.LARGER_MAGNITUDE) & (op != Op.SMALLER_MAGNITUDE)),
            chosen.eq(Mux(takes_b, Mux(by_value, y, self.b), Mux(by_value, x, self.a))),
            word.eq(Mux(Mux(by_value, unordered, takes_b & b_nan), FP32.nan, chosen)),
        ]
        with m.Switch(op):
            with m.Case(Op.MIN):
                m.d.comb += takes_b.eq(~below)
            with m.Case(Op.LARGER_MAGNITUDE):
                m.d.comb += takes_b.eq(unordered | below | same)
            with m.Case(Op.SMALLER_MAGNITUDE):
                m.d.comb += takes_b.eq(unordered | ~below)
            with m.Default():
                m.d.comb += takes_b.eq(below)
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
        return word, truths

    def _ordered(self) -> tuple[Signal, Signal]:
        m, x, y = self._m, self.x, self.y
        lower, below, same = (Signal(name=name) for name in ("lower", "below", "same"))
        m.d.comb += [
            lower.eq(x.as_signed() < y.as_signed()),
            same.eq(x == y),
            below.eq(lower ^ Mux(self.integer, self.uint32 & (x[31] ^ y[31]), x[31] & y[31] & ~same)),
        ]
        return below, same


def _select_result(m: Module, of: SimpleNamespace) -> tuple[Signal, Signal]:
    source, word = Signal(_Source), Signal(32, name="chosen_word")
    words = {
        (Op.MAX, Op.MIN, Op.ABSOLUTE_MAX, Op.LARGER_MAGNITUDE, Op.SMALLER_MAGNITUDE): of.selected,
        (Op.BITWISE_AND, Op.BITWISE_OR, Op.BITWISE_XOR): of.bitwise,
        (Op.LOGICAL_SHIFT_LEFT, Op.LOGICAL_SHIFT_RIGHT): of.shifted,
        (Op.FLOOR, Op.CEIL, Op.TRUNC): of.integral,
        (Op.ADD, Op.SUBTRACT): of.total,
        (Op.MULTIPLY,): of.product,
        _TRUTHS: Mux(of.truth, Mux(of.integer, 1, _ONE), 0),
    }
    with m.Switch(of.op):
        for operations, value in words.items():
            with m.Case(*operations):
                m.d.comb += word.eq(value)
        with m.Default():
            m.d.comb += word.eq(of.a)
    with m.If(~of.integer), m.Switch(of.op):
        with m.Case(Op.ADD, Op.SUBTRACT):
            m.d.comb += source.eq(_Source.ADDER)
        with m.Case(Op.MULTIPLY):
            m.d.comb += source.eq(_Source.MULTIPLIER)
    return source, word
