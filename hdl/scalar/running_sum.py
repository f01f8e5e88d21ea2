"""Running sum with a short critical path: one FP32 addition per cycle, each to the previous sum.

An addition must end within its cycle, so two paths work in parallel:

- *Far*: the operand of smaller magnitude is aligned. The sum's leading one is at most one place from the leading one of
  the larger operand. The sum is rounded for all three positions before the position is known: half a unit of the last
  place is added together with the operands.
- *Near*: the signs differ, and the exponents by at most one. The difference may have any number of leading zeros but is
  exact, unless the leading one remains in its place; then the far path is used.

Infinity and NaN are separate flags.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.elementwise.turns import in_turn
from neuroncore_rtl.spec.formats import FP32

__all__ = ["RunningSum"]

_BITS = FP32.precision
_GUARD = 2
_GROUP = 4
"""Bits per group of the leading-zero count."""
_NEAR_BITS = _BITS + 1


class _Sum(data.Struct):
    """An FP32 number in decoded form.

    The exponent is biased as in FP32, 1 for subnormals; the significand includes the leading one, if any.
    """

    significand: unsigned(_BITS)
    exponent: unsigned(FP32.exponent_bits)
    sign: unsigned(1)
    infinite: unsigned(1)
    nan: unsigned(1)


_ZERO = {"exponent": 1}


class RunningSum(wiring.Component):
    """Accumulator: out = out + y in FP32.

    Subnormals are kept. NaN results are canonical, Inf - Inf is NaN, x - x is +0.

    Arguments:
        partitions: number of sums; successive steps use them in turn.

    Ports:
        turn: a step is present; the next step uses the next partition's sum. Ignored with one partition.
        y: the number to add, an FP32 word.
        adds: add y to the sum of the current partition.
        restart: with `adds`, add to +0 instead of the sum.
        out: FP32 word of the sum, `LATENCY` cycles later, +0 after a reset; combinational after registers.
    """

    LATENCY = 2

    turn: In(1)
    y: In(32)
    adds: In(1)
    restart: In(1)
    out: Out(32)

    def __init__(self, partitions: int = 1):
        self.partitions = partitions
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        word = Fp32(self.y)
        adds = Signal()
        m.d.sync += adds.eq(self.adds)
        y = Pipeline(m, ("operand",)).cut(
            "operand", sign=word.sign, exponent=word.exponent, significand=word.significand, special=word.special,
            nan=word.nan,
        )  # fmt: skip
        # A restart clears the sum one cycle before the addition; the old sum has been output by then.
        clears = self.adds & self.restart
        self._sum = held = Signal(_Sum, init=_ZERO)
        beyond, field = Signal(), Signal(FP32.exponent_bits)
        magnitude = Mux(beyond, FP32.infinity, Cat(held.significand[:-1], field))[:31]
        m.d.comb += [
            beyond.eq(held.infinite | held.exponent.all()),
            field.eq(Mux(held.significand[-1], held.exponent, 0)),
            self.out.eq(Mux(held.nan, FP32.nan, Cat(magnitude, held.sign))),
        ]
        turn = Const(1)
        if self.partitions > 1:
            turn = Signal()
            m.d.sync += turn.eq(self.turn)
        # With n partitions, each has an addition every n cycles, so the adder has n stages.
        self._later = lambda name, value: in_turn(m, value, self.partitions, turn, name)
        new_exponent, new_significand, new_sign, cancels = self._add(m, y)
        flags = Cat(adds, beyond, y.sign, y.special, y.nan)
        adds, beyond, y_sign, y_special, y_nan = self._later("flags", flags)
        before, after = self._later("before", held), Signal(_Sum)
        m.d.comb += after.eq(before)
        with m.If(adds & cancels):
            m.d.comb += [after.exponent.eq(_ZERO["exponent"]), after.significand.eq(0)]
        with m.Elif(adds):
            m.d.comb += [after.exponent.eq(new_exponent), after.significand.eq(new_significand)]
        with m.If(adds):
            m.d.comb += [
                after.sign.eq(Mux(beyond, before.sign, new_sign & ~cancels)),
                after.infinite.eq(beyond | y_special),
                after.nan.eq(before.nan | y_nan | (beyond & y_special & (before.sign ^ y_sign))),
            ]
        with m.If(clears):
            m.d.sync += held.eq(_Sum.const(_ZERO))
        with m.Elif(adds if self.partitions == 1 else turn):
            m.d.sync += held.eq(after)
        return m

    def _add(self, m: Module, y) -> tuple[Value, ...]:
        swap, subtract, cancels = Signal(), Signal(), Signal()
        large, small = Signal(_BITS), Signal(_BITS)
        exponent, distance = Signal(FP32.exponent_bits), Signal(FP32.exponent_bits)
        own, other = (self._sum.significand, self._sum.exponent), (y.significand, y.exponent)
        above, below = Signal(FP32.exponent_bits), Signal(FP32.exponent_bits)
        m.d.comb += [
            swap.eq(Cat(*own) < Cat(*other)),
            subtract.eq(self._sum.sign ^ y.sign),
            cancels.eq(subtract & (Cat(*own) == Cat(*other))),
            large.eq(Mux(swap, other[0], own[0])),
            small.eq(Mux(swap, own[0], other[0])),
            exponent.eq(Mux(swap, other[1], own[1])),
            above.eq(own[1] - other[1]),
            below.eq(other[1] - own[1]),
            distance.eq(Mux(swap, below, above)),
        ]
        far, place = self._far(m, large, small, distance, subtract, exponent)
        near, count, uncancelled = self._near(m, own, other, exponent)
        takes_near = Signal()
        close, apart, cancels, sign = self._later(
            "nears", Cat(subtract & ~distance[1:].any(), distance[0], cancels, Mux(swap, y.sign, self._sum.sign))
        )
        m.d.comb += takes_near.eq(close & ~(apart & uncancelled))
        new_exponent = Mux(takes_near, self._exponent - count, place)[: FP32.exponent_bits]
        return new_exponent, Mux(takes_near, near, far), sign, cancels

    def _far(self, m: Module, large, small, distance, subtract, exponent) -> tuple[Value, Value]:
        """Far path: return the rounded significand and its exponent, with the sum's delay.

        Half a unit of the last place is added in the zeros below the larger operand.
        """
        everything, lost = Signal(), Signal()
        widened, by8, by2, aligned = (Signal(_BITS + _GUARD, name=name) for name in ("by0", "by8", "by2", "by1"))
        losses = [Signal(name=f"lost{number}") for number in range(3)]
        m.d.comb += [everything.eq(distance[5:].any()), widened.eq(Cat(Const(0, _GUARD), small))]
        for value, shifted, places, step, loss in (
            (widened, by8, distance[3:5], 8, losses[0]),
            (by8, by2, distance[1:3], 2, losses[1]),
            (by2, aligned, distance[0], 1, losses[2]),
        ):
            with m.Switch(places):
                for number in range(1 << len(places)):
                    with m.Case(number):
                        m.d.comb += [shifted.eq(value[number * step :]), loss.eq(value[: number * step].any())]
        addend = Signal(_BITS + _GUARD)
        m.d.comb += [
            addend.eq(Mux(everything, 0, aligned)),
            lost.eq(Cat(losses).any() | (everything & small.any())),
        ]
        higher, same, lower = (Signal(_BITS + _GUARD + 2, name=name) for name in ("higher", "same", "lower"))
        below = Cat(addend ^ subtract.replicate(len(addend)), subtract)
        carry = Mux(subtract, ~lost, 0)
        m.d.comb += [
            # An additional lowest bit carries into the sum.
            higher.eq(Cat(Const(3, 2), large) + addend + 1),
            same.eq((Cat(Const(1, 1), Const(2, 2), large) + Cat(carry, below))[1:]),
            lower.eq((Cat(Const(1, 1), Const(1, 2), large) + Cat(carry, below))[1:]),
        ]
        higher, same, lower = (
            self._later(name, word) for name, word in (("higher", higher), ("same", same), ("lower", lower))
        )
        subtract, lost = self._later("far", Cat(subtract, lost))
        exponent = self._exponent = self._later("exponent", exponent)
        places = []
        for word, tail in ((higher, 3), (same, 2), (lower, 1)):
            tie = ~word[:tail].any() & ~lost
            places.append(Cat(word[tail] & ~tie, word[tail + 1 : tail + _BITS]))
        other, takes_other = Mux(subtract, places[2], places[0]), Mux(subtract, ~lower[_BITS + 1], same[_BITS + 2])
        other_exponent = Mux(subtract, exponent - 1, exponent + 1)
        return Mux(takes_other, other, places[1]), Mux(takes_other, other_exponent, exponent)[: FP32.exponent_bits]

    def _near(self, m: Module, own, other, exponent) -> tuple[Value, Value, Value]:
        """Subtract on the near path, for nearly equal exponents.

        Return the normalised difference, its shift, and whether nothing cancelled.
        """
        # The exponent must not fall below 1: a sentinel bit ends the count there.
        low, high = Signal(8), Signal(4)
        m.d.comb += [
            low.eq(Cat(exponent[:3] == value for value in range(8))),
            high.eq(Cat((exponent[3:5] == value) & ~exponent[5:].any() for value in range(4))),
        ]
        ends, step = Signal(_NEAR_BITS - 1), Signal(2)
        x, y, difference = Signal(_NEAR_BITS), Signal(_NEAR_BITS), Signal(_NEAR_BITS)
        positive, negative = Signal(_NEAR_BITS + 1), Signal(_NEAR_BITS)
        m.d.comb += [
            ends.eq(Cat(low[place % 8] & high[place // 8] for place in range(_NEAR_BITS - 1, 0, -1))),
            # The low bits of the difference give the exponents' order before they have been compared.
            step.eq((own[1] - other[1])[:2]),
            x.eq(Mux(step == 3, own[0], Cat(Const(0, 1), own[0]))),
            y.eq(Mux(step == 1, other[0], Cat(Const(0, 1), other[0]))),
            positive.eq(x - y),
            negative.eq(y - x),
            difference.eq(Mux(positive[-1], negative, positive)),
        ]
        # The lowest bit is not tested: if no higher bit is set, it must be, or the sum would be zero.
        higher = difference[1:]
        groups = [slice(place - _GROUP, place) for place in range(len(higher), 0, -_GROUP)]
        empty, fines = Signal(len(groups)), []
        for number, group in enumerate(groups):
            fine, seen = Signal(2, name=f"fine{number}"), higher[group] | ends[group]
            m.d.comb += [
                empty[number].eq(~seen.any()),
                fine.eq(Mux(seen[3], 0, Mux(seen[2], 1, Mux(seen[1], 2, 3)))),
            ]
            fines.append(self._later(f"fine{number}", fine))
        difference, empty = self._later("difference", difference), self._later("empty", empty)
        count, fine = Signal(3), Signal(2)
        for bit in range(3):
            ways = [
                empty[:number].all() & ~empty[number : number + 1].any()
                for number in range(1, len(groups) + 1)
                if number >> bit & 1
            ]
            m.d.comb += count[bit].eq(Cat(ways).any())
        with m.Switch(count):
            for number, places in enumerate(fines):
                with m.Case(number):
                    m.d.comb += fine.eq(places)
        by8, by4, by1 = (Signal(_NEAR_BITS, name=f"left{step}") for step in (8, 4, 1))
        for value, shifted, places, step in (
            (difference, by8, count[1:], 8), (by8, by4, count[0], 4), (by4, by1, fine, 1),
        ):  # fmt: skip
            with m.Switch(places):
                for number in range(1 << len(places)):
                    with m.Case(number):
                        m.d.comb += shifted.eq(value << number * step)
        return by1[1:], Cat(fine, count), difference[-1]
