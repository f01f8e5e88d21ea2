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


def _let(m: Module, name: str, value: Value, width: int | None = None) -> Signal:
    """Return a signal of this name and value; of the value's width, or cut to another."""
    signal = Signal(width or len(Value.cast(value)), name=name)
    m.d.comb += signal.eq(value)
    return signal


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
        acc = cut("input", acc=self.acc).acc
        product = cut("multiply", acc=acc, **self._multiply(m, acc))
        operands = cut("align", **self._align(m, product), **self._specials(m, product))
        total = cut("add", **self._add(m, operands))
        normal = cut("normalise", **self._normalise(m, total))
        m.d.comb += self.out.eq(self._round(m, normal))
        return m

    def _multiply(self, m: Module, acc: Value) -> dict[str, Value]:
        x, w = self.x, self.w
        absent = (x.nan & x.inf) | (w.nan & w.inf)
        product = _let(m, "product", x.significand * w.significand)
        return {
            "product": product,
            "exponent": _let(m, "product_exponent", x.exponent + w.exponent),
            # An absent product is a zero of the accumulator's sign, the one number that changes no accumulator.
            "sign": _let(m, "product_sign", Mux(absent, acc[31], x.sign ^ w.sign)),
            "infinite": _let(m, "infinite", (x.inf | w.inf) & ~absent),
            "invalid": _let(m, "invalid", (x.nan | w.nan | ((x.inf | w.inf) & (product == 0))) & ~absent),
        }

    def _specials(self, m: Module, product) -> dict[str, Value]:
        """Everything that is not a finite number goes around the adder."""
        acc, infinite = product.acc, product.infinite
        acc_special = _let(m, "acc_special", acc[FRACTION_BITS:31] == 0xFF)
        acc_nan = acc_special & (acc[:FRACTION_BITS] != 0)
        opposed = infinite & acc_special & (product.sign ^ acc[31])
        return {
            "inf": _let(m, "inf", infinite | acc_special),
            "nan": _let(m, "nan", product.invalid | acc_nan | opposed),
            "inf_sign": _let(m, "inf_sign", Mux(infinite, product.sign, acc[31])),
        }

    def _align(self, m: Module, product) -> dict[str, Value]:
        """The number with the smaller exponent moves right, its lost bits gather in the sticky bit."""
        acc = product.acc
        field = acc[FRACTION_BITS:31]
        subtract = _let(m, "subtract", product.sign ^ acc[31])
        hidden = _let(m, "hidden", field != 0)
        acc_exponent = _let(m, "acc_exponent", (field | ~hidden) + ACC_OFFSET, 11)
        acc_significand = _let(m, "acc_significand", Cat(acc[:FRACTION_BITS], hidden))
        distance = _let(m, "distance", product.exponent - acc_exponent, 12)
        acc_larger = _let(m, "acc_larger", distance[11])
        swap = _let(m, "swap", (product.product ^ acc_significand) & acc_larger.replicate(FP32.precision))
        magnitude = _let(m, "magnitude", (distance ^ acc_larger.replicate(12)) + acc_larger, 12)
        shift = _let(m, "shift", Mux(magnitude > ALIGNED_BITS, ALIGNED_BITS, magnitude[:5]), 5)
        small = _let(m, "small", Cat(Const(0, GUARD_BITS), acc_significand ^ swap))
        shifted = _let(m, "shifted", small >> shift)
        lost = _let(m, "lost", small & ~(Const(-1, ALIGNED_BITS) << shift)[:ALIGNED_BITS])
        return {
            "big": _let(m, "big", product.product ^ swap),
            "aligned": _let(m, "aligned", Cat(shifted[0] | (lost != 0), shifted[1:])),
            "subtract": subtract,
            "sign": _let(m, "sign", product.sign ^ (acc_larger & subtract)),
            "zero_sign": product.sign & acc[31],
            "reference": _let(m, "reference", product.exponent - ACC_OFFSET + Mux(acc_larger, magnitude, 0), 11),
        }

    def _add(self, m: Module, operands) -> dict[str, Value]:
        """Magnitude and sign of the sum."""
        width = ALIGNED_BITS + 2
        big, subtract = Cat(Const(0, GUARD_BITS), operands.big), operands.subtract
        total = _let(m, "total", big + (operands.aligned ^ subtract.replicate(width)) + subtract, width)
        negative = _let(m, "negative", total[-1])
        return {
            "size": _let(m, "size", (total[:-1] ^ negative.replicate(width - 1)) + negative, width - 1),
            "negative": negative, "sign": operands.sign, "zero_sign": operands.zero_sign,
            "reference": operands.reference, "inf": operands.inf, "nan": operands.nan, "inf_sign": operands.inf_sign,
        }  # fmt: skip

    def _normalise(self, m: Module, total) -> dict[str, Value]:
        """The leading one comes to the top, but the exponent never below that of a subnormal: there is the sentinel."""
        sentinel = Const(1 << ALIGNED_BITS, ALIGNED_BITS + 1) >> total.reference
        zeros = _leading_zeros(m, _let(m, "counted", total.size | sentinel), "lz")
        is_zero = total.size == 0
        return {
            "normal": _let(m, "normal", total.size << zeros, len(total.size)),
            "exponent": _let(m, "exponent", total.reference - zeros, 11),
            "is_zero": is_zero, "sign": Mux(is_zero, total.zero_sign, total.sign ^ total.negative),
            "inf": total.inf, "nan": total.nan, "inf_sign": total.inf_sign,
        }  # fmt: skip

    def _round(self, m: Module, number) -> Value:
        """Return the storage word."""
        normal, exponent = number.normal, number.exponent
        up = normal[GUARD_BITS] & ((normal[:GUARD_BITS] != 0) | normal[GUARD_BITS + 1])
        packed = _let(m, "packed", Cat(Const(0, FRACTION_BITS), exponent[:8]) + normal[GUARD_BITS + 1 :] + up, 31)
        finite = Mux(exponent >= 0xFE, FP32.infinity, packed) & ~number.is_zero.replicate(31)
        special = Mux(number.nan, FP32.nan, Cat(Const(FP32.infinity, 31), number.inf_sign))
        return Mux(number.inf | number.nan, special, Cat(finite, number.sign))
