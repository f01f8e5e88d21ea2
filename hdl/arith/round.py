"""FP32 to any format with one rounding, to nearest even or stochastic.

The significand is shifted right once, to where its last place meets that of the target: above the point stand the bits
that stay, below it the 32 bits of the discarded part. Both modes then add a word to the discarded part and round away
from zero on its carry; to nearest even is the word that carries just above one half, or at one half if the last place
is odd. An integer format is read as a float of 32 bits of precision whose smallest exponent is 31, so that its last
place is 1. Exponent and rounded significand add up to the result's magnitude as one integer: a rounding that carries
into the next power of two, or from the largest subnormal into the smallest normal number, needs no path of its own, and
everything above the format's limit, infinities included, is a comparison.
"""

from amaranth import C, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FORMATS, FP32, Format

__all__ = ["Fp32Rounder"]

_WIDTH = 32
_INT_EXPONENT = 31
_ABOVE_HALF = 0x7FFF_FFFF
"""Carries out of 32 bits if added to more than one half."""


def _precision(fmt: Format) -> int:
    return fmt.precision if fmt.is_float else _WIDTH


def _min_exponent(fmt: Format) -> int:
    return fmt.min_exponent if fmt.is_float else _INT_EXPONENT


def _limit(fmt: Format) -> int:
    """Largest magnitude of a positive result, without padding: infinity, or the largest integer."""
    return fmt.infinity >> fmt.padding_bits if fmt.is_float else fmt.max


def _place(fmt: Format, magnitude: Value, sign: Value) -> Value:
    """The storage word of a magnitude, right-aligned in 32 bits."""
    if fmt.is_float:
        return Cat(Const(0, fmt.padding_bits), magnitude[: fmt.bits - 1 - fmt.padding_bits], sign)
    return Mux(sign, -magnitude, magnitude)[: fmt.bits]


class Fp32Rounder(wiring.Component):
    """Round FP32 to a storage word of any format of `spec.formats`.

    One value enters per cycle. To nearest even: ties to the even last place. Stochastic: with f the discarded part of
    the magnitude in units of the target's last place (that of a subnormal included), cut to 32 bits, away from zero if
    f * 2**32 + random >= 2**32, else toward it. Floats overflow to infinity; NaN becomes the format's canonical NaN;
    the sign stays, on zeros too. Integers saturate, infinities included, and NaN becomes 0. To FP32 only NaN changes.

    Arguments:
        latency: cycles from the inputs to word, 1 to 4; word is a register.

    Ports:
        value: FP32 storage word.
        format: the target.
        stochastic: 1 for stochastic rounding, 0 for nearest even.
        random: the random word; looked at in stochastic rounding only.
        word: storage word of the target, right-aligned, upper bits zero, `latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("shift", "out"),
        3: ("shift", "round", "out"),
        4: ("align", "shift", "round", "out"),
    }
    """Places of the registers, by latency."""

    value: In(32)
    format: In(FormatCode)
    stochastic: In(1)
    random: In(32)
    word: Out(32)

    def __init__(self, latency: int = 2):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 1 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pipeline = Pipeline(m, self.CUTS[self.latency])

        fraction, field = self.value[: FP32.mantissa_bits], self.value[FP32.mantissa_bits : 31]
        exponent = Signal(FP32.exponent_bits)
        border = Signal(FP32.exponent_bits)
        spare = Signal(range(_WIDTH))
        excess = Signal(FP32.exponent_bits)
        shift = Signal(FP32.exponent_bits + 1)
        below = Signal()
        m.d.comb += [
            # Both exponents carry the bias of FP32; subnormals share the exponent of field 1.
            exponent.eq(Cat(field[0] | ~field.any(), field[1:])),
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
        significand, shift, excess, sign, nan, fmt_code, stochastic, random = pipeline.cut(
            "align", significand=Cat(fraction, field.any()), shift=shift, excess=excess, sign=self.value[31],
            nan=field.all() & fraction.any(), format=Value.cast(self.format), stochastic=self.stochastic,
            random=self.random,
        )  # fmt: skip

        shifted = Signal(2 * _WIDTH)
        m.d.comb += shifted.eq(
            Mux(shift[6:].any(), 0, Cat(Const(0, 2 * _WIDTH - FP32.precision), significand) >> shift[:6])
        )
        kept, discarded, excess, sign, nan, fmt_code, stochastic, random = pipeline.cut(
            "shift", kept=shifted[_WIDTH:], discarded=shifted[:_WIDTH], excess=excess, sign=sign, nan=nan,
            format=fmt_code, stochastic=stochastic, random=random,
        )  # fmt: skip

        addend = Signal(_WIDTH)
        tail = Signal(_WIDTH + 1)
        m.d.comb += [
            addend.eq(Mux(stochastic, random, _ABOVE_HALF + kept[0])),
            tail.eq(discarded + addend),
        ]
        kept, up, excess, sign, nan, fmt_code = pipeline.cut(
            "round", kept=kept, up=tail[-1], excess=excess, sign=sign, nan=nan, format=fmt_code
        )

        base = Signal(_WIDTH)
        limit = Signal(_WIDTH)
        over = Signal()
        total = Signal(_WIDTH)
        magnitude = Signal(_WIDTH)
        m.d.comb += [
            total.eq(base + kept + up),
            magnitude.eq(Mux(over | (total > limit), limit, total)),
        ]
        word = Signal(_WIDTH)
        with m.Switch(fmt_code):
            for fmt in FORMATS.values():
                with m.Case(fmt.code):
                    if fmt.is_float:
                        m.d.comb += [base.eq(Cat(Const(0, fmt.mantissa_bits), excess)), limit.eq(_limit(fmt))]
                    else:
                        # One more below zero than above it.
                        m.d.comb += [over.eq(excess.any()), limit.eq(_limit(fmt) + sign)]
                    m.d.comb += word.eq(Mux(nan, fmt.nan if fmt.is_float else 0, _place(fmt, magnitude, sign)))
        m.d.comb += self.word.eq(*pipeline.cut("out", word=word))
        return m
