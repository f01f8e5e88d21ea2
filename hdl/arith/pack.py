"""From significand and exponent to an FP32 word, with one rounding to nearest even at whatever last place it has."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed

from neuroncore_rtl.spec.formats import FP32

__all__ = ["pack_fp32"]

_FARTHEST = FP32.precision + 1
"""A shift that leaves nothing but the sticky bit: the leading one is then below half of the smallest subnormal."""


def pack_fp32(m: Module, significand: Value, field: Value, sticky: Value | int = 0) -> Value:
    """Return the 31 bits of exponent field and fraction of a positive number.

    Results below the smallest normal number are rounded at the last place of the subnormals, once; those that round
    to more than the largest number are infinite.

    Arguments:
        m: the module that receives the (combinational) logic.
        significand: unsigned, 25 to 33 bits, its top bit one: a value in [1, 2).
        field: signed, 10 bits: the exponent plus the bias, whether or not it fits the exponent field.
        sticky: whether the exact number is above the significand by less than its last place.
    """
    tail = len(significand) - FP32.precision
    small = Signal(name="pack_small")
    missing = Signal(signed(len(field) + 1), name="pack_missing")
    shift = Signal(range(_FARTHEST + 1), name="pack_shift")
    window = Signal(len(significand) + _FARTHEST, name="pack_window")
    shifted = Signal(len(significand), name="pack_shifted")
    up = Signal(name="pack_up")
    base = Signal(FP32.exponent_bits, name="pack_base")
    rounded = Signal(31, name="pack_rounded")
    magnitude = Signal(31, name="pack_magnitude")
    m.d.comb += [
        small.eq(field < 1),
        missing.eq(1 - field),
        shift.eq(Mux(small, Mux(missing > _FARTHEST, _FARTHEST, missing[: len(shift)]), 0)),
        window.eq(Cat(Const(0, _FARTHEST), significand) >> shift),
        shifted.eq(window[_FARTHEST:]),
        up.eq(shifted[tail - 1] & (shifted[tail] | shifted[: tail - 1].any() | window[:_FARTHEST].any() | sticky)),
        # The leading one of a normal number adds the last unit to its exponent, and so does a carry.
        base.eq(Mux(small, 0, (field - 1)[: FP32.exponent_bits])),
        rounded.eq(Cat(Const(0, FP32.mantissa_bits), base) + shifted[tail:] + up),
        # Of the largest exponent, a carry makes the infinity by itself.
        magnitude.eq(Mux(field > FP32.max_exponent + FP32.bias, FP32.infinity, rounded)),
    ]
    return magnitude
