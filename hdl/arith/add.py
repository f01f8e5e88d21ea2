"""IEEE 754 binary32 addition with one rounding, to nearest even.

The operand of larger magnitude goes first, the other is aligned below it with guard, round and sticky bits: 27 bits,
28 with the carry. A leading-zero count normalises the sum; a sentinel bit at the place where the exponent runs out
stops the shift, so that subnormal results need no path of their own. Fraction and exponent are then rounded as one
integer: the carry out of the fraction is the increment of the exponent.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Adder"]

_GUARD = 3
_WIDTH = FP32.precision + _GUARD + 1
_TAIL = 28
"""Bits kept below the sticky bit's place while aligning: shifts of up to 31 then lose nothing."""


class Fp32Adder(wiring.Component):
    """out = a + b in FP32: subnormals kept, NaN results canonical, Inf - Inf is NaN, x - x is +0.

    One addition enters per cycle.

    Arguments:
        latency: cycles from a, b to out, 1 to 4; out is a register.

    Ports:
        a, b: FP32 storage words.
        out: FP32 storage word of the sum, `latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("sum", "out"),
        3: ("swap", "sum", "out"),
        4: ("swap", "sum", "normalise", "out"),
    }
    """Places of the registers, by latency."""

    a: In(32)
    b: In(32)
    out: Out(32)

    def __init__(self, latency: int = 2):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 1 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pipeline = Pipeline(m, self.CUTS[self.latency])
        fraction_bits = FP32.mantissa_bits

        swap = Signal()
        large, small = Signal(32), Signal(32)
        m.d.comb += [
            swap.eq(self.a[:31] < self.b[:31]),
            large.eq(Mux(swap, self.b, self.a)),
            small.eq(Mux(swap, self.a, self.b)),
        ]
        large_field, small_field = large[fraction_bits:31], small[fraction_bits:31]
        distance = Signal(FP32.exponent_bits)
        exponent = Signal(FP32.exponent_bits)
        subtract, inf, nan = Signal(), Signal(), Signal()
        m.d.comb += [
            # Subnormals share the exponent of field 1.
            exponent.eq(Cat(large_field[0] | ~large_field.any(), large_field[1:])),
            distance.eq(exponent - Cat(small_field[0] | ~small_field.any(), small_field[1:])),
            subtract.eq(large[31] ^ small[31]),
            inf.eq(large_field.all()),
            # Of two magnitudes a NaN is the larger; of equal fields both may be infinite.
            nan.eq(inf & (large[:fraction_bits].any() | (small_field.all() & subtract))),
        ]
        large_significand = Cat(large[:fraction_bits], large_field.any())
        small_significand = Cat(small[:fraction_bits], small_field.any())
        large_significand, small_significand, distance, exponent, sign, subtract, inf, nan = pipeline.cut(
            "swap", large=large_significand, small=small_significand, distance=distance, exponent=exponent,
            sign=large[31], subtract=subtract, inf=inf, nan=nan,
        )  # fmt: skip

        near, far = distance[:5], distance[5:].any()
        shifted = Signal(_TAIL + _GUARD + FP32.precision)
        aligned = Signal(_WIDTH)
        total = Signal(_WIDTH)
        widened = Cat(Const(0, _GUARD), large_significand)
        m.d.comb += [
            shifted.eq(Cat(Const(0, _TAIL + _GUARD), small_significand) >> near),
            aligned.eq(
                Mux(
                    far,
                    small_significand.any(),
                    Cat(shifted[: _TAIL + 1].any(), shifted[_TAIL + 1 :]),
                )
            ),
            total.eq(Mux(subtract, widened - aligned, widened + aligned)),
        ]
        total, exponent, sign, subtract, inf, nan = pipeline.cut(
            "sum", total=total, exponent=exponent, sign=sign, subtract=subtract, inf=inf, nan=nan
        )

        # A shift by `exponent` brings the sentinel to the top: the field is then 1, or 0 if the top bit stays zero.
        sentinel = Signal(_WIDTH)
        field = Signal(FP32.exponent_bits + 1)
        m.d.comb += sentinel.eq(Mux(exponent[5:].any(), 0, Const(1 << (_WIDTH - 1), _WIDTH) >> exponent[:5]))
        normal, shift = normalise(m, total, "sum", sentinel)
        m.d.comb += field.eq(Mux(normal[-1], exponent + 1 - shift, 0))
        normal, field, sign, inf, nan = pipeline.cut(
            "normalise", total=normal, field=field, sign=sign & ~(subtract & ~total.any()), inf=inf, nan=nan
        )

        rounding = _WIDTH - FP32.precision
        last, half, rest = normal[rounding], normal[rounding - 1], normal[: rounding - 1].any()
        rounded = Signal(33)
        overflow = Signal()
        word = Signal(32)
        m.d.comb += [
            rounded.eq(Cat(normal[rounding:-1], field) + (half & (rest | last))),
            overflow.eq(inf | (rounded[fraction_bits:] >= FP32.infinity >> fraction_bits)),
            word.eq(Mux(nan, FP32.nan, Cat(Mux(overflow, FP32.infinity, rounded[:31])[:31], sign))),
        ]
        m.d.comb += self.out.eq(*pipeline.cut("out", word=word))
        return m
