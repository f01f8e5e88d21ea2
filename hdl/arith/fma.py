"""IEEE 754 binary32 fused multiply-add: exact product, one rounding to nearest even.

Product and addend are words of 48 bits, with the addend's 24-bit significand at the top. The word with the smaller
exponent is shifted right. Subnormals are not normalised, so the product may have up to 24 leading zeros. Three bits
below the last place, the last one sticky, suffice:

1. If the addend loses bits, it lies far below the product's leading one. The sum's leading one is then at the same
   place or one lower: 24 bits and the rounding bit stand above the sticky bit.
2. If the product loses bits, the addend has no leading zeros, or its exponent allows no normalising shift.

The larger exponent is the reference. The addend's is at least a subnormal's, so the reference is too, and it limits the
normalising shift: subnormal results need no separate path.

The multiplier may also serve integers; their product bypasses the rest.
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
"""Bits of a shift amount; the largest shift leaves only the sticky bit."""

_FINE, _COARSE = range(3), range(3, _PLACES)
"""Bits of the normalising shift amount, before and after an optional register."""

_FIELD = signed(11)
"""Shapes of a product's exponent, biased as in FP32, and of the difference of two such exponents."""


class Fp32Fma(wiring.Component):
    """Fused multiply-add: out = a * b + c in FP32. Throughput: one operation per cycle.

    Subnormals are kept. NaN results are canonical, Inf * 0 is NaN, x - x is +0. With c = -0 the result is the rounded
    product.

    Arguments:
        latency: cycles from a, b, c to out, 1 to 6; out is a register.

    Ports:
        a, b, c: FP32 words.
        integer: a and b are 32-bit integers; out is then undefined.
        out: FP32 word of the result, `latency` cycles later.
        product: lower 32 bits of an integer product, `product_latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("multiply", "out"),
        3: ("multiply", "sum", "out"),
        4: ("multiply", "align", "sum", "out"),
        5: ("multiply", "align", "sum", "normalise", "out"),
        6: ("operands", "multiply", "align", "sum", "normalise", "out"),
    }
    """Cuts of the pipeline that hold a register, by `latency`."""

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
        """Cycles from `a` and `b` to `product`."""
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
        """Compute the exact product of `a` and `b`, its exponent minus the one of `c`, and the non-finite flags."""
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
            # Exponent of the product's top bit. A zero product gets an exponent below all others.
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
        total = Signal(_SUM_BITS + 1)
        opposite, size = Signal(_SUM_BITS), Signal(_SUM_BITS)
        negative = Signal()
        widened = Cat(Const(0, _GUARD_BITS), operands.large)
        m.d.comb += [
            total.eq(Mux(operands.subtract, widened - operands.aligned, widened + operands.aligned)),
            opposite.eq(operands.aligned - widened),
            # With equal exponents, or leading zeros in the product, the operand with the reference exponent may be
            # smaller.
            negative.eq(total[-1]),
            size.eq(Mux(negative, opposite, total)),
        ]
        sign, inf = operands.sign, operands.inf
        # An infinity's sign bypasses the adder; an exact zero from opposite signs is +0.
        result_sign = Mux(inf, sign, Mux(size.any(), sign ^ negative, sign & ~operands.subtract))
        return {"size": size, "reference": operands.reference, "sign": result_sign, "inf": inf, "nan": operands.nan}

    def _coarse(self, m: Module, total) -> dict[str, Value]:
        """Apply the higher bits of the shift that normalises the sum; the exponent limits the shift."""
        reference = total.reference
        fewer = reference[_PLACES:].any()
        near, far, fewer = normalise_partly(m, total.size, "sum", _COARSE, reference, fewer)
        return {
            "near": near, "far": far, "fewer": fewer, "reference": reference, "sign": total.sign, "inf": total.inf,
            "nan": total.nan,
        }  # fmt: skip

    def _fine(self, m: Module, coarse) -> tuple[Value, Value]:
        """Apply the lower bits of the normalising shift; return the significand and its exponent field.

        The top bit of the significand is one, unless the exponent limited the shift.
        """
        # If the shift equals `reference`, the result's exponent field is 1, or 0 if the top bit stays zero.
        reference = coarse.reference
        normal, places, _ = normalise_partly(m, coarse.near, "sum", _FINE, reference, coarse.fewer)
        field = Mux(normal[-1], reference + 1 - Cat(places, coarse.far), 0)
        return normal, field[: len(reference)]
