"""IEEE 754 binary32 multiplication with one rounding, to nearest even.

A subnormal operand is normalised first, so that the product of two 24-bit significands lacks its leading bit by one
place at most. One operand is enough for that: where both are subnormal the product is far below the smallest result,
and only whether it is zero matters. A result in the subnormal range is shifted right, its lost bits gather in a sticky
bit. Fraction and exponent are then rounded as one integer.
"""

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["FIELD", "PRODUCT_BITS", "Fp32Multiplier", "exact_product"]

PRODUCT_BITS = 2 * FP32.precision

FIELD = signed(11)
"""Shape of an exponent biased as in FP32, of anything between the smallest and the largest product."""

_FRACTION_BITS = FP32.mantissa_bits
_SPECIAL = (1 << FP32.exponent_bits) - 1
_NO_FIELD = -512
"""Exponent of an operand that is zero: the product is then below everything, whatever the other operand is."""

_KEPT = FP32.precision + 2
"""Bits that a rounding looks at: the significand, the rounding bit, the sticky bit."""
_TAIL = 31
"""Bits kept below the sticky bit's place while shifting: shifts of up to 31 then lose nothing."""


def exact_product(m: Module, pipeline: Pipeline, a: Signal, b: Signal):
    """Multiply two FP32 words exactly; combinational but for registers at the places "normalise" and "multiply".

    Arguments:
        m: the module that receives the logic.
        pipeline: its registers.
        a, b: FP32 storage words.

    Returns:
        product: 48 bits, one of the upper two set unless it is zero or both operands are subnormal.
        field: biased exponent (`FIELD`) of the product's top bit; far below that of every result if the product is 0.
        sign, inf, nan: of the result; inf may accompany nan.
    """
    a_field, b_field = a[_FRACTION_BITS:31], b[_FRACTION_BITS:31]
    a_special = Signal()
    b_special = Signal()
    a_fraction = Signal()
    b_fraction = Signal()
    swap = Signal()
    raw = Signal(FP32.precision)
    raw_field = Signal(FP32.exponent_bits)
    other = Signal(FP32.precision)
    other_field = Signal(FP32.exponent_bits)
    m.d.comb += [
        a_special.eq(a_field.all()),
        b_special.eq(b_field.all()),
        a_fraction.eq(a[:_FRACTION_BITS].any()),
        b_fraction.eq(b[:_FRACTION_BITS].any()),
        # `raw` is normalised: of the two a subnormal or zero, if there is any.
        swap.eq(a_field.any()),
        raw.eq(Cat(Mux(swap, b[:_FRACTION_BITS], a[:_FRACTION_BITS]), swap & b_field.any())),
        raw_field.eq(Mux(swap, b_field, a_field)),
        other.eq(Cat(Mux(swap, a[:_FRACTION_BITS], b[:_FRACTION_BITS]), swap | b_field.any())),
        other_field.eq(Mux(swap, a_field, b_field)),
    ]
    normal, shift = normalise(m, raw, "operand")
    field = Signal(FIELD)
    m.d.comb += field.eq(
        Mux(normal[-1], (raw_field | ~raw[-1]) - shift, _NO_FIELD)
        + (other_field | ~other[-1]) - (FP32.bias - 1)
    )  # fmt: skip
    a_zero, b_zero = ~a_field.any() & ~a_fraction, ~b_field.any() & ~b_fraction
    nan = (a_special & (a_fraction | b_zero)) | (b_special & (b_fraction | a_zero))
    normal, other, field, sign, inf, nan = pipeline.cut(
        "normalise", normal=normal, other=other, field=field, sign=a[31] ^ b[31], inf=a_special | b_special, nan=nan
    )
    product = Signal(PRODUCT_BITS)
    m.d.comb += product.eq(normal * other)
    return pipeline.cut("multiply", product=product, field=field, sign=sign, inf=inf, nan=nan)


class Fp32Multiplier(wiring.Component):
    """out = a * b in FP32: subnormals kept, NaN results canonical, Inf * 0 is NaN.

    One multiplication enters per cycle.

    Arguments:
        latency: cycles from a, b to out, 1 to 3; out is a register.

    Ports:
        a, b: FP32 storage words.
        out: FP32 storage word of the product, `latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("multiply", "out"),
        3: ("normalise", "multiply", "out"),
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
        product, top_field, sign, inf, nan = exact_product(m, pipeline, self.a, self.b)

        leading = Signal(PRODUCT_BITS)
        field = Signal(FIELD)
        distance = Signal(FIELD)
        kept = Signal(_KEPT)
        shifted = Signal(_KEPT + _TAIL)
        aligned = Signal(_KEPT)
        m.d.comb += [
            leading.eq(Mux(product[-1], product, Cat(Const(0, 1), product[:-1]))),
            field.eq(top_field - ~product[-1]),
            kept.eq(Cat(leading[: 1 - _KEPT].any(), leading[1 - _KEPT :])),
            # How far a result is below the smallest normal number, whose field is 1.
            distance.eq(Mux(field < 1, 1 - field, 0)),
            shifted.eq(Cat(Const(0, _TAIL), kept) >> distance[:5]),
            aligned.eq(Mux(distance[5:].any(), kept.any(), Cat(shifted[: _TAIL + 1].any(), shifted[_TAIL + 1 :]))),
        ]
        last, half, rest = aligned[2], aligned[1], aligned[0]
        rounded = Signal(33)
        overflow = Signal()
        word = Signal(32)
        m.d.comb += [
            rounded.eq(Cat(aligned[2:-1], Mux(aligned[-1], field[:-1], 0)) + (half & (rest | last))),
            overflow.eq(inf | (rounded[_FRACTION_BITS:] >= _SPECIAL)),
            word.eq(Mux(nan, FP32.nan, Cat(Mux(overflow, FP32.infinity, rounded[:31])[:31], sign))),
            self.out.eq(*pipeline.cut("out", word=word)),
        ]
        return m
