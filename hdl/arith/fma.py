"""IEEE 754 binary32 fused multiply-add: the product exact, one rounding, to nearest even.

Product and addend stand in words of 48 bits, the addend's 24 at the top. The one of the larger exponent stays, the
other moves right. One bit below the last place is enough: only a shift by one can meet a cancellation, and loses
nothing to it; otherwise the sum keeps its upper bits, the rounding is some twenty places up, and what was lost need
only be known not to be zero. As the addend's exponent is never below that of a subnormal, neither is the reference, and
a sentinel bit stops the normalising shift there: subnormal results need no path of their own.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32, round_fp32
from neuroncore_rtl.hdl.arith.multiply import FIELD, PRODUCT_BITS, exact_product
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Fma"]

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
        cut = pipeline.cut
        c = cut("multiply", c=cut("normalise", c=self.c).c).c
        product = exact_product(m, pipeline, self.a, self.b)
        aligned = cut("align", **self._align(m, product, Fp32(c)))
        total = cut("sum", **self._sum(m, aligned))
        significand, field = self._normalise(m, total)
        word = round_fp32(m, significand, field, total.sign, total.inf, total.nan)
        m.d.comb += self.out.eq(cut("out", word=word).word)
        return m

    def _align(self, m: Module, product, c: Fp32) -> dict[str, Value]:
        """The one of the larger exponent stays, the other moves right; what is not finite goes around the adder."""
        special, subtract, c_larger = Signal(), Signal(), Signal()
        c_exponent = Signal(FP32.exponent_bits)
        addend, large = Signal(PRODUCT_BITS), Signal(PRODUCT_BITS)
        distance = Signal(FIELD)
        magnitude = Signal(len(distance))
        shift = Signal(range(_ALIGNED_BITS + 1))
        small, shifted, lost = (Signal(_ALIGNED_BITS, name=name) for name in ("small", "shifted", "lost"))
        reference = Signal(FP32.exponent_bits + 1)
        m.d.comb += [
            special.eq(c.special),
            subtract.eq(product.sign ^ c.sign),
            c_exponent.eq(c.exponent),
            addend.eq(Cat(Const(0, PRODUCT_BITS - FP32.precision), c.significand)),
            distance.eq(product.field - c_exponent),
            c_larger.eq(distance[-1]),
            magnitude.eq(Mux(c_larger, -distance, distance)),
            shift.eq(Mux(magnitude > _ALIGNED_BITS, _ALIGNED_BITS, magnitude)),
            large.eq(Mux(c_larger, addend, product.product)),
            small.eq(Cat(Const(0, 1), Mux(c_larger, product.product, addend))),
            shifted.eq(small >> shift),
            lost.eq(small & (Const((1 << _ALIGNED_BITS) - 1) >> (_ALIGNED_BITS - shift)[: len(shift)])),
            reference.eq(Mux(c_larger, c_exponent, product.field)),
        ]
        return {
            "large": large, "aligned": Cat(shifted[0] | lost.any(), shifted[1:]), "reference": reference,
            "sign": Mux(~product.inf & (c_larger | special), c.sign, product.sign), "subtract": subtract,
            "inf": product.inf | special,
            "nan": product.nan | (special & (c.fraction.any() | (product.inf & subtract))),
        }  # fmt: skip

    def _sum(self, m: Module, operands) -> dict[str, Value]:
        """Magnitude and sign of the sum."""
        total = Signal(_SUM_BITS + 1)
        negative = Signal()
        size = Signal(_SUM_BITS)
        widened = Cat(Const(0, 1), operands.large)
        m.d.comb += [
            total.eq(Mux(operands.subtract, widened - operands.aligned, widened + operands.aligned)),
            # Where the exponent does not tell the larger, the reference may be the smaller.
            negative.eq(total[-1]),
            size.eq(Mux(negative, -total, total)),
        ]
        sign, inf = operands.sign, operands.inf
        # The sign of an infinity came around the adder; an exact zero of two signs is +0.
        result_sign = Mux(inf, sign, Mux(size.any(), sign ^ negative, sign & ~operands.subtract))
        return {"size": size, "reference": operands.reference, "sign": result_sign, "inf": inf, "nan": operands.nan}

    def _normalise(self, m: Module, total) -> tuple[Value, Value]:
        """Return the significand, its leading one at the top unless the exponent runs out, and the field."""
        # A shift by `reference` brings the sentinel to the top: the field is then 1, or 0 if the top bit stays zero.
        reference = total.reference
        sentinel = Signal(_SUM_BITS)
        m.d.comb += sentinel.eq(Mux(reference[6:].any(), 0, Const(1 << (_SUM_BITS - 1), _SUM_BITS) >> reference[:6]))
        normal, places = normalise(m, total.size, "sum", sentinel)
        return normal, Mux(normal[-1], reference + 1 - places, 0)[: len(reference)]
