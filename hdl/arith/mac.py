"""Multiply-accumulate of a processing element: fp32(acc + x * w) with an exact product and one rounding.

The product of two 12-bit significands has 24 bits, as an FP32 significand has: one floating-point addition of 24-bit
numbers suffices, no 74-bit adder. The product's leading one may be one place below its top bit. Four bits below the
last place keep the rounding exact: two for the left shift that such a product can cause, a rounding bit, a sticky bit.

Exponents are compared in the product's scale, in parallel with the multiplier. The larger exponent is the reference.
The accumulator's exponent is at least the subnormals' exponent, so the reference is too. A sentinel bit stops the
normalising shift at that exponent: subnormal results need no separate path.

A negative sum is not negated. Its complement, one less than its magnitude, is normalised, with ones shifted in; the
rounding adds the one. Negation and rounding thus share one carry.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Mac"]

GUARD_BITS = 4
ALIGNED_BITS = FP32.precision + GUARD_BITS
SUM_BITS = ALIGNED_BITS + 1
FRACTION_BITS = FP32.mantissa_bits
ACC_OFFSET = 2 * OPERAND_BIAS - FP32.bias - 1
"""Offset from an FP32 exponent field to the product's exponent, which is the sum of two biased ones."""

REFERENCE_BITS = 9
"""Bits of an exponent with FP32's bias; the exponent of a product is at most 382."""

GROUP = 4
GROUPS = SUM_BITS // GROUP
"""Groups of bits in which the leading zeros of a sum are counted first.

The lowest bit of a sum is in no group: unless the shift is limited, the leading one of a sum, or of its complement, is
at least two places above it.
"""


def _let(m: Module, name: str, value: Value, width: int | None = None) -> Signal:
    """Return a combinational signal called `name` that carries `value`, truncated to `width` bits if given."""
    signal = Signal(width or len(Value.cast(value)), name=name, src_loc_at=1)
    m.d.comb += signal.eq(value)
    return signal


def _leading_groups(m: Module, stops: Value) -> Value:
    """Return how many of the highest groups of bits are zero; `stops` has the lowest bit of each nonzero group set."""
    at = [stops[GROUP * group] for group in range(GROUPS)]
    upper = _let(m, "upper_zero", stops[3 * GROUP :] == 0)
    first = _let(m, "first_zero", stops[5 * GROUP :] == 0)
    third = _let(m, "third_zero", stops[GROUP : 3 * GROUP] == 0)
    one = Mux(upper, at[1] & ~at[2], Mux(first, ~at[4], ~at[6]))
    return Cat(one, Mux(upper, third, first), upper)


class Mac(wiring.Component):
    """Fused multiply-add. Throughput: one result per cycle.

    Rounds to nearest even; subnormals are kept; NaN results are canonical (0x7FC00000).

    Arguments:
        latency: pipeline stages, 1 to 5.
        significand_bits: significand width of an operand, 8 or 12.

    Ports:
        x, w: operands (`Operand`), one cycle after `acc`: the tile registers the operands while this unit registers
            `acc`. If one of them is absent, `out` is `acc` unchanged.
        acc: FP32, registered on entry.
        out: FP32, `latency` cycles after `acc`.
    """

    CUTS = {
        1: ("input",),
        2: ("input", "align"),
        3: ("input", "multiply", "add"),
        4: ("input", "multiply", "align", "add"),
        5: ("input", "multiply", "align", "add", "normalise"),
    }
    """Cuts of the pipeline that hold a register, by `latency`.

    The first is at `acc`, not at `out`: a simulator then evaluates the arithmetic once per cycle, after the clock edge.
    With a register at `out` it would evaluate all logic that an input reaches once more.
    """

    def __init__(self, latency: int = 1, significand_bits: int = SIGNIFICAND_BITS):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be between 1 and {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        self.significand_bits = significand_bits
        operand = In(Operand(significand_bits))
        super().__init__({"x": operand, "w": operand, "acc": In(32), "out": Out(32)})

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        acc = cut("input", acc=self.acc).acc
        product = cut("multiply", acc=acc, **self._multiply(m), **self._distance(m, acc), **self._kinds(m, acc))
        operands = cut("align", **self._align(m, product), **self._specials(m, product))
        total = cut("add", **self._add(m, operands))
        normal = cut("normalise", **self._normalise(m, total))
        m.d.comb += self.out.eq(self._round(m, normal))
        return m

    def _multiply(self, m: Module) -> dict[str, Value]:
        """Multiply the operands' significands; append zeros up to the width of an FP32 significand."""
        product = _let(m, "product", self.x.significand * self.w.significand)
        return {"product": Cat(Const(0, FP32.precision - len(product)), product)}

    def _distance(self, m: Module, acc: Value) -> dict[str, Value]:
        """Find whether product or accumulator has the larger exponent, and the right shift of the smaller number."""
        field = acc[FRACTION_BITS:31]
        hidden = _let(m, "hidden", field != 0)
        acc_field = _let(m, "acc_field", field | ~hidden, 8)
        # Adding ACC_OFFSET, 7 * 128, causes no carry.
        acc_exponent = _let(m, "acc_exponent", Cat(acc_field[:7], (~acc_field[7]).replicate(3), acc_field[7]))
        exponent = _let(m, "product_exponent", self.x.exponent + self.w.exponent)
        distance = _let(m, "distance", exponent - acc_exponent, 12)
        acc_larger = _let(m, "acc_larger", distance[11])
        # A negative distance gives its magnitude less one: the product is already shifted by one place.
        magnitude = _let(m, "magnitude", distance[:11] ^ acc_larger.replicate(11))
        return {
            "hidden": hidden,
            "acc_larger": acc_larger,
            "shift": _let(m, "shift", magnitude[:5] | (magnitude[5:] != 0).replicate(5), 5),
            "reference": _let(m, "reference", Mux(acc_larger, acc_field, exponent - ACC_OFFSET), REFERENCE_BITS),
        }

    def _kinds(self, m: Module, acc: Value) -> dict[str, Value]:
        """Compute the product's sign, and whether it is infinite or invalid.

        The top bit of a significand is 0 only in a zero.
        """
        x, w = self.x, self.w
        absent = (x.nan & x.inf) | (w.nan & w.inf)
        times_zero = (x.inf & ~w.significand[-1]) | (w.inf & ~x.significand[-1])
        return {
            # An absent product is a zero with the accumulator's sign, the only number that changes no accumulator.
            "sign": _let(m, "product_sign", Mux(absent, acc[31], x.sign ^ w.sign)),
            "infinite": _let(m, "infinite", (x.inf | w.inf) & ~absent),
            "invalid": _let(m, "invalid", (x.nan | w.nan | times_zero) & ~absent),
        }

    def _specials(self, m: Module, product) -> dict[str, Value]:
        """Compute whether the result is infinite or NaN, and the infinity's sign; these signals bypass the adder."""
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
        """Shift the number with the smaller exponent right; the bits shifted out form the sticky bit.

        The shift is a multiple of eight, then the rest: the first loses only whole bytes, the second at most seven
        bits. For a subtraction the result is complemented here, as part of the last selection.
        """
        acc, acc_larger = product.acc, product.acc_larger
        acc_significand = _let(m, "acc_significand", Cat(acc[:FRACTION_BITS], product.hidden))
        small = Mux(acc_larger, product.product << (GUARD_BITS - 1), acc_significand << GUARD_BITS)
        small = _let(m, "small", small, ALIGNED_BITS)
        far, near = Cat(Const(0, 3), product.shift[3:]), product.shift[:3]
        moved = _let(m, "moved", small >> far)
        far_lost = _let(m, "far_lost", small & ~(Const(-1, ALIGNED_BITS) << far)[:ALIGNED_BITS])
        near_lost = _let(m, "near_lost", moved[:7] & ~(Const(-1, 7) << near)[:7])
        sticky = _let(m, "sticky", (far_lost != 0) | (near_lost != 0))
        subtract = _let(m, "subtract", product.sign ^ acc[31])
        aligned = ((moved >> near) | sticky) ^ subtract.replicate(ALIGNED_BITS)
        return {
            "big": _let(m, "big", Mux(acc_larger, acc_significand, product.product)),
            "aligned": _let(m, "aligned", aligned, ALIGNED_BITS),
            "subtract": subtract,
            "sign": _let(m, "sign", product.sign ^ (acc_larger & subtract)),
            "reference": product.reference,
        }

    def _add(self, m: Module, operands) -> dict[str, Value]:
        """Add the aligned numbers, and count the whole groups of bits of the normalising left shift.

        The exponent limits this shift.
        """
        width = SUM_BITS + 1
        subtract = operands.subtract
        big, aligned = Cat(Const(0, GUARD_BITS), operands.big), Cat(operands.aligned, subtract.replicate(2))
        total = _let(m, "total", big + aligned + subtract, width)
        negative = _let(m, "negative", total[-1])
        bits = _let(m, "bits", total[1:SUM_BITS] ^ negative.replicate(SUM_BITS - 1))
        pairs = _let(m, "pairs", bits | (bits >> 1))
        groups = _let(m, "groups", (pairs | (pairs >> 2)) & sum(1 << GROUP * group for group in range(GROUPS)))
        sentinel = Const(1 << SUM_BITS - 1 - GROUP, SUM_BITS) >> Cat(Const(0, 2), operands.reference[2:])
        is_zero = _let(m, "is_zero", (groups == 0) & ~total[0] & ~negative)
        return {
            "total": total[:SUM_BITS],
            "negative": negative,
            "is_zero": is_zero,
            "groups": _let(m, "zero_groups", _leading_groups(m, _let(m, "stops", groups | sentinel, SUM_BITS - 1))),
            # A sum of zeros has their common sign; a zero difference is positive.
            "sign": (operands.sign ^ negative) & ~(is_zero & subtract),
            "reference": operands.reference,
            **_around(operands),
        }

    def _normalise(self, m: Module, total) -> dict[str, Value]:
        """Shift the sum's leading one to the top. A sentinel bit stops the shift at the exponent of subnormals."""
        by_groups = Cat(Const(0, 2), total.groups)
        left = _let(m, "left", total.reference - by_groups, REFERENCE_BITS)
        moved = _let(m, "in_group", total.total << by_groups, SUM_BITS)
        sentinel = Const(1 << GROUP - 1, GROUP) >> left
        top = _let(m, "top", (moved[-GROUP:] ^ total.negative.replicate(GROUP)) | sentinel)
        empty = _let(m, "empty", top[2:] == 0)
        by_bits = _let(m, "by_bits", Cat(Mux(empty, ~top[1], ~top[3]), empty))
        normal = _let(m, "normal", moved << by_bits, SUM_BITS)
        return {
            # Bits from the rounding bit up; the bits below it matter only as one sticky bit and are not complemented.
            "number": _let(m, "number", normal[GUARD_BITS:] ^ total.negative.replicate(SUM_BITS - GUARD_BITS)),
            "rest": _let(m, "rest", normal[:GUARD_BITS] != 0),
            "exponent": _let(m, "exponent", Mux(total.is_zero, 0, left - by_bits), REFERENCE_BITS),
            "negative": total.negative,
            "sign": total.sign,
            **_around(total),
        }

    def _round(self, m: Module, normal) -> Value:
        number, exponent, rest = normal.number, normal.exponent, normal.rest
        half, odd = number[0], number[1]
        # The complement is the magnitude less one in the last place: if it is half or more, the magnitude is more than
        # half.
        up = _let(m, "up", Mux(normal.negative, half | (odd & ~rest), half & (odd | rest)))
        packed = _let(m, "packed", Cat(Const(0, FRACTION_BITS), exponent[:8]) + number[1:] + up, 31)
        finite = Mux(exponent >= 0xFE, FP32.infinity, packed)
        special = Mux(normal.nan, FP32.nan, Cat(Const(FP32.infinity, 31), normal.inf_sign))
        return Mux(normal.inf | normal.nan, special, Cat(finite, normal.sign))


def _around(stage) -> dict[str, Value]:
    """Return the signals of infinity and NaN, which bypass the adder."""
    return {"inf": stage.inf, "nan": stage.nan, "inf_sign": stage.inf_sign}
