"""IEEE 754 binary32 multiplication with one rounding, to nearest even.

A subnormal operand is normalised first, so that the product of two 24-bit significands lacks its leading bit by one
place at most. One operand is enough for that: where both are subnormal the product is far below the smallest result,
and only whether it is zero matters. A result in the subnormal range is shifted right, its lost bits gather in a sticky
bit.
"""

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32, round_fp32
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["FIELD", "PRODUCT_BITS", "Fp32Multiplier", "exact_product"]

PRODUCT_BITS = 2 * FP32.precision

FIELD = signed(11)
"""Shape of an exponent biased as in FP32, of anything between the smallest and the largest product."""

_NO_FIELD = -512
"""Exponent of an operand that is zero: the product is then below everything, whatever the other operand is."""

_KEPT = FP32.precision + 2
"""Bits that a rounding looks at: the significand, the rounding bit, the sticky bit."""
_TAIL = 31
"""Bits kept below the sticky bit's place while shifting: shifts of up to 31 then lose nothing."""


def exact_product(m: Module, pipeline: Pipeline, a_word: Value, b_word: Value) -> SimpleNamespace:
    """Multiply two FP32 words exactly; combinational but for registers at the places "normalise" and "multiply".

    Arguments:
        m: the module that receives the logic.
        pipeline: its registers.
        a_word, b_word: FP32 storage words.

    Returns a record:
        product: 48 bits, one of the upper two set unless it is zero or both operands are subnormal.
        field: biased exponent (`FIELD`) of the product's top bit; far below that of every result if the product is 0.
        sign, inf, nan: of the result; inf may accompany nan.
    """
    a, b = Fp32(a_word), Fp32(b_word)
    a_special, b_special, a_fraction, b_fraction = Signal(), Signal(), Signal(), Signal()
    swap = Signal()
    raw, other = Signal(FP32.precision), Signal(FP32.precision)
    raw_field, other_field = Signal(FP32.exponent_bits), Signal(FP32.exponent_bits)
    field = Signal(FIELD)
    m.d.comb += [
        a_special.eq(a.special),
        b_special.eq(b.special),
        a_fraction.eq(a.fraction.any()),
        b_fraction.eq(b.fraction.any()),
        # `raw` is normalised: of the two a subnormal or zero, if there is any.
        swap.eq(a.normal),
        raw.eq(Cat(Mux(swap, b.fraction, a.fraction), swap & b.normal)),
        raw_field.eq(Mux(swap, b.field, a.field)),
        other.eq(Cat(Mux(swap, a.fraction, b.fraction), swap | b.normal)),
        other_field.eq(Mux(swap, a.field, b.field)),
    ]
    normal, shift = normalise(m, raw, "operand")
    m.d.comb += field.eq(
        Mux(normal[-1], (raw_field | ~raw[-1]) - shift, _NO_FIELD)
        + (other_field | ~other[-1]) - (FP32.bias - 1)
    )  # fmt: skip
    a_zero, b_zero = ~a.normal & ~a_fraction, ~b.normal & ~b_fraction
    nan = (a_special & (a_fraction | b_zero)) | (b_special & (b_fraction | a_zero))
    factors = pipeline.cut(
        "normalise", normal=normal, other=other, field=field, sign=a.sign ^ b.sign, inf=a_special | b_special, nan=nan
    )
    product = Signal(PRODUCT_BITS)
    m.d.comb += product.eq(factors.normal * factors.other)
    return pipeline.cut(
        "multiply", product=product, field=factors.field, sign=factors.sign, inf=factors.inf, nan=factors.nan
    )


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
        exact = exact_product(m, pipeline, self.a, self.b)
        significand, field = self._align(m, exact.product, exact.field)
        word = round_fp32(m, significand, field, exact.sign, exact.inf, exact.nan)
        m.d.comb += self.out.eq(pipeline.cut("out", word=word).word)
        return m

    def _align(self, m: Module, product: Value, top_field: Value) -> tuple[Value, Value]:
        """Return what a rounding looks at, shifted to where its last place is, and the field."""
        leading = Signal(PRODUCT_BITS)
        field, distance = Signal(FIELD), Signal(FIELD)
        kept, aligned = Signal(_KEPT), Signal(_KEPT)
        shifted = Signal(_KEPT + _TAIL)
        m.d.comb += [
            leading.eq(Mux(product[-1], product, Cat(Const(0, 1), product[:-1]))),
            field.eq(top_field - ~product[-1]),
            kept.eq(Cat(leading[: 1 - _KEPT].any(), leading[1 - _KEPT :])),
            # How far a result is below the smallest normal number, whose field is 1.
            distance.eq(Mux(field < 1, 1 - field, 0)),
            shifted.eq(Cat(Const(0, _TAIL), kept) >> distance[:5]),
            aligned.eq(Mux(distance[5:].any(), kept.any(), Cat(shifted[: _TAIL + 1].any(), shifted[_TAIL + 1 :]))),
        ]
        return aligned, Mux(aligned[-1], field[:-1], 0)
