"""IEEE 754 binary32 fused multiply-add: the product exact, one rounding, to nearest even.

Product and addend stand in words of 48 bits, the addend's 24 at the top. The one of the larger exponent stays, the
other moves right. Subnormal operands are not normalised, so the product may have up to 24 zeros above it. Three bits
below the last place are enough, the last of them sticky: where the addend loses bits there, it is so far below the
product's leading one that the sum keeps its place, or the one below, and 24 bits and the rounding bit stand above the
sticky one; where the product loses bits, the addend has no such zeros, or the exponent nothing to give to normalise
them. As the addend's exponent is never below that of a subnormal, neither is the reference, and the normalising shift
goes no further than that: subnormal results need no path of their own.

The multiplier may serve integers, too: their product leaves it on a way of its own.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.align import align
from neuroncore_rtl.hdl.arith.fp32 import Fp32, round_fp32
from neuroncore_rtl.hdl.arith.normalise import normalise_partly
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Fma"]

_PRODUCT_BITS = 2 * FP32.precision
_GUARD_BITS = 3
_ALIGNED_BITS = _PRODUCT_BITS + _GUARD_BITS
_SUM_BITS = _ALIGNED_BITS + 1
_PLACES = (_ALIGNED_BITS - 1).bit_length()
"""Bits of a shift; the largest one leaves nothing but what was lost."""

_FINE, _COARSE = range(3), range(3, _PLACES)
"""Digits of the normalising shift, which may have a register in between."""

_FIELD = signed(11)
"""Shape of an exponent biased as in FP32, of anything between the smallest and the largest product, and of their
differences from another exponent."""


class Fp32Fma(wiring.Component):
    """out = a * b + c in FP32: subnormals kept, NaN results canonical, Inf * 0 is NaN, x - x is +0.

    One operation enters per cycle. With c = -0, it is the rounded product.

    Arguments:
        latency: cycles from a, b, c to out, 1 to 6; out is a register.

    Ports:
        a, b, c: FP32 storage words.
        integer: a and b are integers of 32 bits instead, and out means nothing.
        out: FP32 storage word of the result, `latency` cycles later.
        product: of integers, the lower 32 bits of the product, `product_latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("multiply", "out"),
        3: ("multiply", "sum", "out"),
        4: ("multiply", "align", "sum", "out"),
        5: ("multiply", "align", "sum", "normalise", "out"),
        6: ("operands", "multiply", "align", "sum", "normalise", "out"),
    }
    """Places of the registers, by latency."""

    a: In(32)
    b: In(32)
    c: In(32)
    integer: In(1)
    out: Out(32)
    product: Out(32)

    def __init__(self, latency: int = 4):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 1 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__()

    @property
    def product_latency(self) -> int:
        """Cycles from a and b to product."""
        return len({"operands", "multiply"} & set(self.CUTS[self.latency]))

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        operands = cut("operands", a=self.a, b=self.b, c=self.c, integer=self.integer)
        multiplied = cut("multiply", **self._multiply(m, operands))
        aligned = cut("align", **self._align(m, multiplied))
        total = cut("sum", **self._sum(m, aligned))
        coarse = cut("normalise", **self._coarse(m, total))
        significand, field = self._fine(m, coarse)
        word = round_fp32(m, significand, field, coarse.sign, coarse.inf, coarse.nan)
        m.d.comb += [self.product.eq(multiplied.product), self.out.eq(cut("out", word=word).word)]
        return m

    def _multiply(self, m: Module, operands) -> dict[str, Value]:
        """The exact product; beside it, how far the exponents are apart, and what is not finite."""
        a, b, c = Fp32(operands.a), Fp32(operands.b), Fp32(operands.c)
        factors = [
            Cat(number.fraction, Mux(operands.integer, word[FP32.mantissa_bits :], number.normal))
            for number, word in ((a, operands.a), (b, operands.b))
        ]
        product = Signal(2 * len(operands.a))
        a_zero, b_zero, a_special, b_special, a_nan, b_nan, special = (
            Signal(name=name) for name in ("a_zero", "b_zero", "a_special", "b_special", "a_nan", "b_nan", "special")
        )
        field, distance = Signal(_FIELD), Signal(_FIELD)
        c_larger, sign, product_inf, subtract = (
            Signal(name=name) for name in ("c_larger", "product_sign", "product_inf", "subtract")
        )
        magnitude = Signal(_FIELD.width - 1)
        m.d.comb += [
            product.eq(factors[0] * factors[1]),
            a_zero.eq(a.zero),
            b_zero.eq(b.zero),
            a_special.eq(a.special),
            b_special.eq(b.special),
            a_nan.eq(a_special & a.fraction.any()),
            b_nan.eq(b_special & b.fraction.any()),
            special.eq(c.special),
            # Of the product's top bit; a product of zero is below everything.
            field.eq(a.exponent + b.exponent - (FP32.bias - 1)),
            distance.eq(field - c.exponent),
            c_larger.eq((distance < 0) | a_zero | b_zero),
            magnitude.eq(Mux(c_larger, -distance, distance)),
            sign.eq(a.sign ^ b.sign),
            product_inf.eq(a_special | b_special),
            subtract.eq(sign ^ c.sign),
        ]
        return {
            "product": product[:_PRODUCT_BITS], "addend": c.significand, "c_larger": c_larger,
            "shift": magnitude[:_PLACES] | magnitude[_PLACES:].any().replicate(_PLACES),
            "reference": Mux(c_larger, c.exponent, field)[: FP32.exponent_bits + 1],
            "sign": Mux(~product_inf & (c_larger | special), c.sign, sign), "subtract": subtract,
            "inf": product_inf | special,
            "nan": a_nan | b_nan | (a_special & b_zero) | (b_special & a_zero)
            | (special & (c.fraction.any() | (product_inf & subtract))),
        }  # fmt: skip

    def _align(self, m: Module, product) -> dict[str, Value]:
        """The one of the larger exponent stays, the other moves right."""
        large, small = Signal(_PRODUCT_BITS), Signal(_ALIGNED_BITS)
        addend = Cat(Const(0, _PRODUCT_BITS - FP32.precision), product.addend)
        m.d.comb += [
            large.eq(Mux(product.c_larger, addend, product.product)),
            small.eq(Cat(Const(0, _GUARD_BITS), Mux(product.c_larger, product.product, addend))),
        ]
        shifted, lost = align(m, small, product.shift, "small")
        return {
            "large": large, "aligned": Cat(shifted[0] | lost, shifted[1:]), "reference": product.reference,
            "sign": product.sign, "subtract": product.subtract, "inf": product.inf, "nan": product.nan,
        }  # fmt: skip

    def _sum(self, m: Module, operands) -> dict[str, Value]:
        """Magnitude and sign of the sum."""
        total = Signal(_SUM_BITS + 1)
        opposite, size = Signal(_SUM_BITS), Signal(_SUM_BITS)
        negative = Signal()
        widened = Cat(Const(0, _GUARD_BITS), operands.large)
        m.d.comb += [
            total.eq(Mux(operands.subtract, widened - operands.aligned, widened + operands.aligned)),
            opposite.eq(operands.aligned - widened),
            # Where the exponent does not tell the larger, the reference may be the smaller.
            negative.eq(total[-1]),
            size.eq(Mux(negative, opposite, total)),
        ]
        sign, inf = operands.sign, operands.inf
        # The sign of an infinity came around the adder; an exact zero of two signs is +0.
        result_sign = Mux(inf, sign, Mux(size.any(), sign ^ negative, sign & ~operands.subtract))
        return {"size": size, "reference": operands.reference, "sign": result_sign, "inf": inf, "nan": operands.nan}

    def _coarse(self, m: Module, total) -> dict[str, Value]:
        """The leading one comes near the top, unless the exponent runs out."""
        reference = total.reference
        fewer = reference[_PLACES:].any()
        near, far, fewer = normalise_partly(m, total.size, "sum", _COARSE, reference, fewer)
        return {
            "near": near, "far": far, "fewer": fewer, "reference": reference, "sign": total.sign, "inf": total.inf,
            "nan": total.nan,
        }  # fmt: skip

    def _fine(self, m: Module, coarse) -> tuple[Value, Value]:
        """Return the significand, its leading one at the top unless the exponent ran out, and the field."""
        # After a shift by `reference` the field is 1, or 0 if the top bit stays zero.
        reference = coarse.reference
        normal, places, _ = normalise_partly(m, coarse.near, "sum", _FINE, reference, coarse.fewer)
        field = Mux(normal[-1], reference + 1 - Cat(places, coarse.far), 0)
        return normal, field[: len(reference)]
