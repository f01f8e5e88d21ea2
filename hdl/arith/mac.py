"""The multiply-accumulate of a processing element: fp32(acc + x * w), product exact, one rounding.

The product of two 12-bit significands has 24 bits, as an FP32 significand has, so the fused operation is one floating
point addition of two 24-bit numbers: no 74-bit adder. The product may lack its leading bit by one place; four bits
below the last place (two for the left shift that this can cause, the rounding bit, a sticky bit) keep the rounding
exact.

Exponents are compared on the product's own scale, where no constant has to be added before the comparison: the larger
of the two is the reference, and as an accumulator is never below the exponent of a subnormal, neither is the reference.
A sentinel bit limits the normalising shift there, so that subnormal results need no second path.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, Operand
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Mac"]

GUARD_BITS = 4
ALIGNED_BITS = FP32.precision + GUARD_BITS
FRACTION_BITS = FP32.mantissa_bits
ACC_OFFSET = 2 * OPERAND_BIAS - FP32.bias - 1
"""Added to an FP32 exponent field to bring it to the scale of the product's exponent, the sum of two biased ones."""


def _leading_zeros(m: Module, value, name: str):
    """Return the count of zeros above the first one of a 29-bit value that has at least one; it halves as it counts."""
    counts = []
    rest = Cat(Const(0b111, 3), value)  # 32 bits; the filling below never changes the count of a nonzero value
    width = 32
    while width > 1:
        width //= 2
        zero = Signal(name=f"{name}_zero{width}")
        half = Signal(width, name=f"{name}_half{width}")
        m.d.comb += [
            zero.eq(rest[width:] == 0),
            half.eq(Mux(zero, rest[:width], rest[width:])),
        ]
        counts.append(zero)
        rest = half
    return Cat(*reversed(counts))


class Mac(wiring.Component):
    """One fused multiply-add.

    Arguments:
        latency: pipeline stages, 1 to 5.

    Ports:
        x, w: operands (:class:`Operand`), a cycle after `acc` (the tile registers them where `acc` is registered here);
            an absent one passes `acc` on unchanged.
        acc: FP32, registered on entry.
        out: FP32, `latency` cycles after `acc`.

    One result per cycle. Rounds to nearest even; subnormals kept; NaN results are canonical (0x7FC00000).
    """

    CUTS = {
        1: ("input",),
        2: ("input", "align"),
        3: ("input", "multiply", "add"),
        4: ("input", "multiply", "align", "add"),
        5: ("input", "multiply", "align", "add", "normalise"),
    }
    """Registers by latency. The first one is at `acc`, not at `out`: a simulator then evaluates the arithmetic once a
    cycle, after the clock edge, where a register at `out` makes it evaluate whatever an input reaches once more."""

    def __init__(self, latency: int = 1):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be between 1 and {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__({"x": In(Operand), "w": In(Operand), "acc": In(32), "out": Out(32)})

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        x, w = self.x, self.w
        (acc,) = cut("input", acc=self.acc)

        def let(name, value, width=None):
            signal = Signal(width or len(Value.cast(value)), name=name)
            m.d.comb += signal.eq(value)
            return signal

        absent = (x.nan & x.inf) | (w.nan & w.inf)
        product = let("product", x.significand * w.significand)
        product_exponent = let("product_exponent", x.exponent + w.exponent)
        # An absent product is a zero of the accumulator's sign, the one number that changes no accumulator.
        product_sign = let("product_sign", Mux(absent, acc[31], x.sign ^ w.sign))
        infinite = let("infinite", (x.inf | w.inf) & ~absent)
        invalid = let("invalid", (x.nan | w.nan | ((x.inf | w.inf) & (product == 0))) & ~absent)
        product, product_exponent, product_sign, infinite, invalid, acc = cut(
            "multiply",
            product=product,
            product_exponent=product_exponent,
            product_sign=product_sign,
            infinite=infinite,
            invalid=invalid,
            acc=acc,
        )

        # Everything that is not a finite number goes around the adder.
        field = acc[FRACTION_BITS:31]
        subtract = let("subtract", product_sign ^ acc[31])
        acc_special = let("acc_special", field == 0xFF)
        acc_nan = acc_special & (acc[:FRACTION_BITS] != 0)
        inf = let("inf", infinite | acc_special)
        nan = let("nan", invalid | acc_nan | (infinite & acc_special & subtract))
        inf_sign = let("inf_sign", Mux(infinite, product_sign, acc[31]))

        # Align: the number with the smaller exponent moves right, its lost bits gather in the sticky bit.
        hidden = let("hidden", field != 0)
        acc_exponent = let("acc_exponent", (field | ~hidden) + ACC_OFFSET, 11)
        acc_significand = let("acc_significand", Cat(acc[:FRACTION_BITS], hidden))
        distance = let("distance", product_exponent - acc_exponent, 12)
        acc_larger = let("acc_larger", distance[11])
        swap = let("swap", (product ^ acc_significand) & acc_larger.replicate(FP32.precision))
        magnitude = let("magnitude", (distance ^ acc_larger.replicate(12)) + acc_larger, 12)
        shift = let("shift", Mux(magnitude > ALIGNED_BITS, ALIGNED_BITS, magnitude[:5]), 5)
        big = let("big", product ^ swap)
        small = let("small", Cat(Const(0, GUARD_BITS), acc_significand ^ swap))
        shifted = let("shifted", small >> shift)
        lost = let("lost", small & ~(Const(-1, ALIGNED_BITS) << shift)[:ALIGNED_BITS])
        reference = let("reference", product_exponent - ACC_OFFSET + Mux(acc_larger, magnitude, 0), 11)
        sign = let("sign", product_sign ^ (acc_larger & subtract))
        aligned = let("aligned", Cat(shifted[0] | (lost != 0), shifted[1:]))
        zero_sign = product_sign & acc[31]
        big, aligned, subtract, sign, zero_sign, reference, inf, nan, inf_sign = cut(
            "align",
            big=big,
            aligned=aligned,
            subtract=subtract,
            sign=sign,
            zero_sign=zero_sign,
            reference=reference,
            inf=inf,
            nan=nan,
            inf_sign=inf_sign,
        )

        total = let(
            "total",
            Cat(Const(0, GUARD_BITS), big) + (aligned ^ subtract.replicate(ALIGNED_BITS + 2)) + subtract,
            ALIGNED_BITS + 2,
        )
        negative = let("negative", total[-1])
        size = let("size", (total[:-1] ^ negative.replicate(len(total) - 1)) + negative, len(total) - 1)
        size, negative, sign, zero_sign, reference, inf, nan, inf_sign = cut(
            "add",
            size=size,
            negative=negative,
            sign=sign,
            zero_sign=zero_sign,
            reference=reference,
            inf=inf,
            nan=nan,
            inf_sign=inf_sign,
        )

        # Normalise, but never below the exponent of a subnormal: the sentinel stops the count there.
        sentinel = Const(1 << ALIGNED_BITS, ALIGNED_BITS + 1) >> reference
        zeros = _leading_zeros(m, let("counted", size | sentinel), "lz")
        normal = let("normal", size << zeros, len(size))
        exponent = let("exponent", reference - zeros, 11)
        is_zero = size == 0
        result_sign = Mux(is_zero, zero_sign, sign ^ negative)
        normal, exponent, is_zero, result_sign, inf, nan, inf_sign = cut(
            "normalise",
            normal=normal,
            exponent=exponent,
            is_zero=is_zero,
            result_sign=result_sign,
            inf=inf,
            nan=nan,
            inf_sign=inf_sign,
        )

        up = normal[GUARD_BITS] & ((normal[:GUARD_BITS] != 0) | normal[GUARD_BITS + 1])
        packed = let("packed", Cat(Const(0, FRACTION_BITS), exponent[:8]) + normal[GUARD_BITS + 1 :] + up, 31)
        finite = Mux(exponent >= 0xFE, FP32.infinity, packed) & ~is_zero.replicate(31)
        special_result = Mux(nan, FP32.nan, Cat(Const(FP32.infinity, 31), inf_sign))
        m.d.comb += self.out.eq(Mux(inf | nan, special_result, Cat(finite, result_sign)))
        return m
