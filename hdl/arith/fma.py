"""IEEE 754 binary32 fused multiply-add: the product exact, one rounding, to nearest even.

Product and addend stand in words of 48 bits, the addend's 24 at the top. The one of the larger exponent stays, the
other moves right. One bit below the last place is enough: only a shift by one can meet a cancellation, and loses
nothing to it; otherwise the sum keeps its upper bits, the rounding is some twenty places up, and what was lost need
only be known not to be zero. As the addend's exponent is never below that of a subnormal, neither is the reference, and
a sentinel bit stops the normalising shift there: subnormal results need no path of their own.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.multiply import FIELD, PRODUCT_BITS, exact_product
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Fma"]

_FRACTION_BITS = FP32.mantissa_bits
_SPECIAL = (1 << FP32.exponent_bits) - 1
_ALIGNED_BITS = PRODUCT_BITS + 1
_SUM_BITS = _ALIGNED_BITS + 1


class Fp32Fma(wiring.Component):
    """out = a * b + c in FP32: subnormals kept, NaN results canonical, Inf * 0 is NaN, x - x is +0.

    One operation enters per cycle.

    Arguments:
        latency: cycles from a, b, c to out, 1 to 4; out is a register.

    Ports:
        a, b, c: FP32 storage words.
        out: FP32 storage word of the result, `latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("multiply", "out"),
        3: ("multiply", "sum", "out"),
        4: ("multiply", "align", "sum", "out"),
    }
    """Places of the registers, by latency."""

    a: In(32)
    b: In(32)
    c: In(32)
    out: Out(32)

    def __init__(self, latency: int = 4):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 1 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pipeline = Pipeline(m, self.CUTS[self.latency])
        (c,) = pipeline.cut("normalise", c=self.c)
        (c,) = pipeline.cut("multiply", c=c)
        product, product_field, product_sign, product_inf, product_nan = exact_product(m, pipeline, self.a, self.b)

        c_field = c[_FRACTION_BITS:31]
        c_normal = Signal()
        c_special = Signal()
        subtract = Signal()
        c_exponent = Signal(FP32.exponent_bits)
        addend = Signal(PRODUCT_BITS)
        distance = Signal(FIELD)
        magnitude = Signal(len(distance))
        c_larger = Signal()
        shift = Signal(range(_ALIGNED_BITS + 1))
        large = Signal(PRODUCT_BITS)
        small = Signal(_ALIGNED_BITS)
        shifted = Signal(_ALIGNED_BITS)
        lost = Signal(_ALIGNED_BITS)
        reference = Signal(FP32.exponent_bits + 1)
        m.d.comb += [
            c_normal.eq(c_field.any()),
            c_special.eq(c_field.all()),
            subtract.eq(product_sign ^ c[31]),
            # Subnormals share the exponent of field 1.
            c_exponent.eq(Cat(c_field[0] | ~c_normal, c_field[1:])),
            addend.eq(Cat(Const(0, PRODUCT_BITS - FP32.precision), c[:_FRACTION_BITS], c_normal)),
            distance.eq(product_field - c_exponent),
            c_larger.eq(distance[-1]),
            magnitude.eq(Mux(c_larger, -distance, distance)),
            shift.eq(Mux(magnitude > _ALIGNED_BITS, _ALIGNED_BITS, magnitude)),
            large.eq(Mux(c_larger, addend, product)),
            small.eq(Cat(Const(0, 1), Mux(c_larger, product, addend))),
            shifted.eq(small >> shift),
            lost.eq(small & (Const((1 << _ALIGNED_BITS) - 1) >> (_ALIGNED_BITS - shift)[: len(shift)])),
            reference.eq(Mux(c_larger, c_exponent, product_field)),
        ]
        inf = product_inf | c_special
        nan = product_nan | (c_special & (c[:_FRACTION_BITS].any() | (product_inf & subtract)))
        sign = Mux(~product_inf & (c_larger | c_special), c[31], product_sign)
        large, aligned, reference, sign, subtract, inf, nan = pipeline.cut(
            "align", large=large, aligned=Cat(shifted[0] | lost.any(), shifted[1:]), reference=reference, sign=sign,
            subtract=subtract, inf=inf, nan=nan,
        )  # fmt: skip

        total = Signal(_SUM_BITS + 1)
        negative = Signal()
        size = Signal(_SUM_BITS)
        widened = Cat(Const(0, 1), large)
        m.d.comb += [
            total.eq(Mux(subtract, widened - aligned, widened + aligned)),
            # Where the exponent does not tell the larger, the reference may be the smaller.
            negative.eq(total[-1]),
            size.eq(Mux(negative, -total, total)),
        ]
        # The sign of an infinity came around the adder; an exact zero of two signs is +0.
        result_sign = Mux(inf, sign, Mux(size.any(), sign ^ negative, sign & ~subtract))
        size, reference, sign, inf, nan = pipeline.cut(
            "sum", size=size, reference=reference, sign=result_sign, inf=inf, nan=nan
        )

        # A shift by `reference` brings the sentinel to the top: the field is then 1, or 0 if the top bit stays zero.
        sentinel = Signal(_SUM_BITS)
        m.d.comb += sentinel.eq(Mux(reference[6:].any(), 0, Const(1 << (_SUM_BITS - 1), _SUM_BITS) >> reference[:6]))
        normal, places = normalise(m, size, "sum", sentinel)
        field = Mux(normal[-1], reference + 1 - places, 0)
        rounding = _SUM_BITS - FP32.precision
        last, half, rest = normal[rounding], normal[rounding - 1], normal[: rounding - 1].any()
        rounded = Signal(33)
        overflow = Signal()
        word = Signal(32)
        m.d.comb += [
            rounded.eq(Cat(normal[rounding:-1], field[: len(reference)]) + (half & (rest | last))),
            overflow.eq(inf | (rounded[_FRACTION_BITS:] >= _SPECIAL)),
            word.eq(Mux(nan, FP32.nan, Cat(Mux(overflow, FP32.infinity, rounded[:31])[:31], sign))),
            self.out.eq(*pipeline.cut("out", word=word)),
        ]
        return m
