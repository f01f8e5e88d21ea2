"""Packing of significand and exponent into an FP32 word, subnormals included, with one rounding to nearest even."""

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed

from neuroncore_rtl.hdl.arith.align import align
from neuroncore_rtl.spec.formats import FP32

__all__ = ["aligned_fp32", "pack_fp32", "rounded_fp32"]

_FARTHEST = FP32.precision + 1
"""Right shift that leaves only the sticky bit: the leading one is then below half of the smallest subnormal."""


def pack_fp32(m: Module, significand: Value, field: Value, sticky: Value | int = 0) -> Value:
    """Return the 31 bits of exponent field and fraction of a positive number.

    Results below the smallest normal number are rounded once, at the subnormals' last place. Results that round to more
    than the largest number are infinite.

    Arguments:
        m: the module that receives the (combinational) logic.
        significand: unsigned, 25 to 33 bits, its top bit one: a value in [1, 2).
        field: signed, 10 bits or more: the unbounded exponent plus the bias; may be beyond the range of an FP32 field.
        sticky: the exact number is larger than the significand, by less than one unit of its lowest bit.
    """
    return rounded_fp32(m, SimpleNamespace(**aligned_fp32(m, significand, field, sticky)))


def aligned_fp32(m: Module, significand: Value, field: Value, sticky: Value | int = 0) -> dict[str, Value]:
    """Shift the significand to the position of its rounding bit.

    Its results are the input of `rounded_fp32`, directly or through a register. Parameters: see `pack_fp32`.
    """
    tail = len(significand) - FP32.precision
    small = Signal(name="pack_small")
    missing = Signal(signed(len(field) + 1), name="pack_missing")
    shift = Signal(range(_FARTHEST + 1), name="pack_shift")
    base = Signal(FP32.exponent_bits, name="pack_base")
    m.d.comb += [
        small.eq(field < 1),
        missing.eq(1 - field),
        shift.eq(Mux(small, Mux(missing > _FARTHEST, _FARTHEST, missing[: len(shift)]), 0)),
        # The leading one of a normal number adds the missing unit to its exponent; a rounding carry does so too.
        base.eq(Mux(small, 0, (field - 1)[: FP32.exponent_bits])),
    ]
    # The bits below the rounding bit matter only as one sticky bit.
    shifted, lost = align(m, significand[tail - 1 :], shift, "pack")
    return {
        "shifted": shifted, "rest": lost | significand[: tail - 1].any() | sticky, "base": base,
        "above": field > FP32.max_exponent + FP32.bias,
    }  # fmt: skip


def rounded_fp32(m: Module, parts: SimpleNamespace) -> Value:
    """Return the 31 bits of exponent field and fraction from the results of `aligned_fp32`."""
    up = Signal(name="pack_up")
    rounded = Signal(31, name="pack_rounded")
    magnitude = Signal(31, name="pack_magnitude")
    shifted = parts.shifted
    m.d.comb += [
        up.eq(shifted[0] & (shifted[1] | parts.rest)),
        # An additional lowest bit carries `up` into the sum.
        rounded.eq((Cat(up, Const(0, FP32.mantissa_bits), parts.base) + Cat(Const(1, 1), shifted[1:]))[1:]),
        # A carry out of the largest exponent already gives the infinity.
        magnitude.eq(Mux(parts.above, FP32.infinity, rounded)),
    ]
    return magnitude
