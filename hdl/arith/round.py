"""Conversion of FP32 to any format with one rounding, to nearest even or stochastic.

The significand is shifted right once, to the target's last place: the integer part is kept, the 32 fraction bits are
discarded. A word is added to the discarded part; a carry rounds away from zero. For stochastic rounding that is a
random word. For nearest even it is chosen to carry above one half, and at one half if the last place is odd. An integer
format is treated as a float of 32 bits of precision with smallest exponent 31, so that its last place is 1. Exponent
and significand are added as one integer, the result's magnitude. A carry into the next power of two, or from the
largest subnormal into the smallest normal number, then needs no separate path, and overflow, infinities included, is
one comparison.
"""

from amaranth import C, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.align import align
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FORMATS, FP32, Format

__all__ = ["Fp32Rounder"]

_WIDTH = 32
_INT_EXPONENT = 31
_ABOVE_HALF = 0x7FFF_FFFF
"""Word that carries out of 32 bits exactly if it is added to a discarded part of more than one half."""


def _precision(fmt: Format) -> int:
    return fmt.precision if fmt.is_float else _WIDTH


def _min_exponent(fmt: Format) -> int:
    return fmt.min_exponent if fmt.is_float else _INT_EXPONENT


def _limit(fmt: Format) -> int:
    """Return the code of the largest representable magnitude: infinity, or the largest integer.

    Padding bits of a float are omitted.
    """
    return fmt.infinity >> fmt.padding_bits if fmt.is_float else fmt.max


def _stored(fmt: Format, magnitude: Value, sign: Value) -> Value:
    """Return the storage word of a number with this magnitude and sign, right-aligned in 32 bits."""
    if fmt.is_float:
        return Cat(Const(0, fmt.padding_bits), magnitude[: fmt.bits - 1 - fmt.padding_bits], sign)
    return Mux(sign, -magnitude, magnitude)[: fmt.bits] if fmt.signed else magnitude[: fmt.bits]


class Fp32Rounder(wiring.Component):
    """FP32 to a storage word of any format of `spec.formats`. Throughput: one value per cycle.

    To nearest even: ties to the even last place. Stochastic: let f be the discarded part in units of the target's last
    place (also a subnormal's), truncated to 32 bits; the result is rounded away from zero if f * 2**32 + random >=
    2**32, else toward zero. Floats overflow to infinity, NaN becomes the format's canonical NaN, and zeros keep their
    sign. Integers saturate, infinities included; NaN becomes 0. Conversion to FP32 changes only NaN.

    Arguments:
        latency: cycles from the inputs to word, 1 to 4; word is a register.
        random: support stochastic rounding; otherwise the ports `stochastic` and `random` are ignored.

    Ports:
        value: FP32 word.
        format: target format.
        stochastic: 1 for stochastic rounding, 0 for nearest even.
        random: random word for stochastic rounding.
        word: storage word of the target, right-aligned, upper bits zero, `latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("shift", "out"),
        3: ("shift", "total", "out"),
        4: ("align", "shift", "total", "out"),
    }
    """Cuts of the pipeline that hold a register, by `latency`."""

    value: In(32)
    format: In(FormatCode)
    stochastic: In(1)
    random: In(32)
    word: Out(32)

    def __init__(self, latency: int = 2, random: bool = True):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 1 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        self._draws = random
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        number = cut("align", **self._align(m))
        parts = cut("shift", **self._shift(m, number))
        total = cut("total", **self._total(m, parts, self._carry(m, parts)))
        m.d.comb += self.word.eq(cut("out", word=self._place(m, total)).word)
        return m

    def _align(self, m: Module) -> dict[str, Value]:
        """Compute the significand's right shift, and how far the exponent exceeds the target's smallest exponent."""
        value = Fp32(self.value)
        # All exponents have the bias of FP32.
        exponent, border, excess = (Signal(FP32.exponent_bits, name=name) for name in ("exponent", "border", "excess"))
        spare = Signal(range(_WIDTH))
        shift = Signal(FP32.exponent_bits + 1)
        below = Signal()
        m.d.comb += [
            exponent.eq(value.exponent),
            below.eq(exponent < border),
            excess.eq(Mux(below, 0, exponent - border)),
            shift.eq(spare + Mux(below, (border - exponent)[: FP32.exponent_bits], C(0))),
        ]
        with m.Switch(self.format):
            for fmt in FORMATS.values():
                with m.Case(FormatCode(fmt.code)):
                    m.d.comb += [
                        border.eq(_min_exponent(fmt) + FP32.bias),
                        spare.eq(_WIDTH - _precision(fmt)),
                    ]
        draws = {"stochastic": self.stochastic, "random": self.random} if self._draws else {}
        return draws | {
            "significand": value.significand, "shift": shift, "excess": excess, "sign": value.sign, "nan": value.nan,
            "format": self.format,
        }  # fmt: skip

    def _shift(self, m: Module, number) -> dict[str, Value]:
        """Shift the significand, and separate the bits that the target keeps from the discarded bits."""
        passed = {"excess": number.excess, "sign": number.sign, "nan": number.nan, "format": number.format}
        if not self._draws:
            # The bits below the rounding bit matter only as one sticky bit.
            significand = Cat(Const(0, _WIDTH + 1 - FP32.precision), number.significand)
            places = number.shift[:6] | number.shift[6:].any().replicate(6)
            shifted, lost = align(m, significand, places, "significand")
            return passed | {"kept": shifted[1:], "half": shifted[0], "rest": lost}
        significand = Cat(Const(0, 2 * _WIDTH - FP32.precision), number.significand)
        shifted = Signal(2 * _WIDTH)
        m.d.comb += shifted.eq(Mux(number.shift[6:].any(), 0, significand >> number.shift[:6]))
        draws = {"stochastic": number.stochastic, "random": number.random}
        return passed | draws | {"kept": shifted[_WIDTH:], "discarded": shifted[:_WIDTH]}

    def _carry(self, m: Module, parts) -> Value:
        """Return whether the discarded bits increase the kept magnitude by one."""
        if not self._draws:
            return parts.half & (parts.rest | parts.kept[0])
        addend, tail = Signal(_WIDTH), Signal(_WIDTH + 1)
        m.d.comb += [
            addend.eq(Mux(parts.stochastic, parts.random, _ABOVE_HALF + parts.kept[0])),
            tail.eq(parts.discarded + addend),
        ]
        return tail[-1]

    def _total(self, m: Module, parts, up: Value) -> dict[str, Value]:
        """Compute the code of the rounded magnitude, and the target's largest code.

        Also return whether the input alone, whatever the rounding, exceeds the largest code.
        """
        excess, nan = parts.excess, parts.nan
        base, limit, total = (Signal(_WIDTH, name=name) for name in ("base", "limit", "total"))
        over = Signal()
        # An additional lowest bit carries `up` into the sum.
        m.d.comb += total.eq((Cat(up, base) + Cat(Const(1, 1), parts.kept))[1:])
        with m.Switch(parts.format):
            for fmt in FORMATS.values():
                with m.Case(FormatCode(fmt.code)):
                    if fmt.is_float:
                        quiet = Cat(Const(0, fmt.mantissa_bits - 1), nan)
                        m.d.comb += [base.eq(Cat(Const(0, fmt.mantissa_bits), excess)), limit.eq(_limit(fmt) | quiet)]
                    else:
                        # A signed format has one more value below zero than above, an unsigned one none.
                        below = _limit(fmt) + 1 if fmt.signed else 0
                        highest = Mux(nan, 0, Mux(parts.sign, below, _limit(fmt)))
                        m.d.comb += [over.eq(excess.any()), limit.eq(highest)]
        beyond = over | nan
        return {"total": total, "limit": limit, "beyond": beyond, "sign": parts.sign & ~nan, "format": parts.format}

    def _place(self, m: Module, number) -> Signal:
        magnitude, word = Signal(_WIDTH), Signal(_WIDTH)
        over = number.beyond | (number.total > number.limit)
        m.d.comb += magnitude.eq(Mux(over, number.limit, number.total))
        with m.Switch(number.format):
            for fmt in FORMATS.values():
                with m.Case(FormatCode(fmt.code)):
                    m.d.comb += word.eq(_stored(fmt, magnitude, number.sign))
        return word
