"""The first part of the activation datapath: what z is, which polynomial that takes, and where in it z lies.

Steps 1 to 4 of docs/activation.md, and of step 10 what does not depend on alpha.
"""

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.scalar.number import EXPONENT, decode
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, ControlRow, Coordinate, Factor, Scale, Source, TableReader
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import layout
from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS

__all__ = ["INDEX_BITS", "Argument", "SpecialCode"]

INDEX_BITS = layout.CONTROL_FIELDS["base"]
"""Bits of a segment's number."""

_TURN_BITS = layout.REDUCED_BITS + layout.QUADRANT_BITS
_HALF_WINDOW = layout.WINDOW_BITS // 2
_CUT = layout.WINDOW_BITS - _TURN_BITS
"""Low bits of significand * window that are dropped."""
_LOW_BITS = FP32.precision + _HALF_WINDOW - _CUT
"""Bits of the lower product that stay, those that overlap the higher one included."""

_MOST_BITS = layout.COORDINATE_BITS - layout.LOCAL_BITS
"""Most bits of x that choose a segment."""

_LARGEST_SHIFT = 31


class SpecialCode(enum.Enum, shape=unsigned(4)):
    """Codes of `spec.functions.layout.Special`, and that the result is none of them; waveforms show the names."""

    ZERO = layout.Special.ZERO.value
    HALF = layout.Special.HALF.value
    ONE = layout.Special.ONE.value
    INFINITY = layout.Special.INFINITY.value
    NAN = layout.Special.NAN.value
    LN2 = layout.Special.LN2.value
    TWO_OVER_ROOT_PI = layout.Special.TWO_OVER_ROOT_PI.value
    ALPHA = layout.Special.ALPHA.value
    ALPHA_TIMES_Z = layout.Special.ALPHA_TIMES_Z.value
    QUARTER = layout.Special.QUARTER.value
    NONE = 15


class Argument(wiring.Component):
    """z and a function to a segment, a place in it, and the control bits of what follows. One enters per cycle.

    Ports:
        z: FP32 storage word. function: its code.
        tables: read here: control, special, window_high, window_low; the other addresses stay 0.
        significand, exponent: of z, m and e; anything if z is not an ordinary number.
        index, t: segment and place in it. reduced: r.
        source, factor, scale, exp2: fields of the control row. Where the result is alpha, or alpha * z of a z that is
            a zero or infinite, they make it from alpha.
        sign: s. special: the result, if it is not that of the datapath; for alpha * z that of |z|.

    The outputs are registers, `LATENCY` cycles later.
    """

    CUTS = ("decode", "control", "turns", "segment")
    LATENCY = len(CUTS)

    z: In(32)
    function: In(FUNCTION_BITS)
    tables: Out(TableReader())
    significand: Out(FP32.precision)
    exponent: Out(EXPONENT)
    index: Out(INDEX_BITS)
    t: Out(layout.LOCAL_BITS)
    reduced: Out(layout.REDUCED_BITS)
    source: Out(Source)
    factor: Out(Factor)
    scale: Out(Scale)
    exp2: Out(1)
    sign: Out(1)
    special: Out(SpecialCode)

    def elaborate(self, platform):
        m = Module()
        pipeline = Pipeline(m, self.CUTS)

        number = decode(m, self.z, "number")
        significand, exponent, negative, infinite, zero, nan, function = pipeline.cut(
            "decode", significand=number.significand, exponent=number.exponent, negative=number.sign,
            infinite=number.infinite, zero=number.zero, nan=number.nan, function=self.function,
        )  # fmt: skip

        row = Signal(layout.ROW_BITS)
        parity = function.matches(*(f.code for f in FUNCTIONS.values() if f.parity))
        with m.If(parity):
            m.d.comb += row.eq(exponent[0])
        with m.Elif(exponent < layout.LOW_EXPONENT):
            m.d.comb += row.eq(0)
        with m.Elif(exponent > layout.HIGH_EXPONENT):
            m.d.comb += row.eq(layout.HIGH_EXPONENT - layout.LOW_EXPONENT)
        with m.Else():
            m.d.comb += row.eq(exponent - layout.LOW_EXPONENT)
        m.d.comb += [
            self.tables.control_address.eq(Cat(row, negative, function)),
            self.tables.special_address.eq(Cat(negative, infinite, function)),
            self.tables.window_high_address.eq(exponent),
            self.tables.window_low_address.eq(exponent),
        ]
        significand, exponent, negative, border, infinite, nan = pipeline.cut(
            "control", significand=significand, exponent=exponent, negative=negative, border=zero | infinite,
            infinite=infinite, nan=nan,
        )  # fmt: skip

        control = Signal(ControlRow)
        m.d.comb += control.eq(self.tables.control_row)
        sign, special, source, factor, scale, exp2 = self._results(m, control, negative, border, infinite, nan)
        high, low = Signal(_HALF_WINDOW), Signal(_LOW_BITS)
        shift = Signal(range(_LARGEST_SHIFT + 1))
        distance = Signal(EXPONENT)
        linear, x = Signal(layout.COORDINATE_BITS), Signal(layout.COORDINATE_BITS)
        widened = Cat(Const(0, layout.COORDINATE_BITS - FP32.precision), significand)
        m.d.comb += [
            high.eq(significand * self.tables.window_high_row),
            low.eq((significand * self.tables.window_low_row) >> _CUT),
            distance.eq(layout.LOW_EXPONENT - exponent),
            shift.eq(Mux(distance > _LARGEST_SHIFT, _LARGEST_SHIFT, distance)),
            linear.eq(widened >> shift),
            x.eq(Mux(control.coordinate == Coordinate.LINEAR, linear, widened[:-1] << 1)),
        ]
        trigonometric = (control.coordinate == Coordinate.SIN) | (control.coordinate == Coordinate.COS)
        (high, low, x, trigonometric, cosine, base, bits, source, factor, scale, exp2, sign, special, significand,
         exponent) = pipeline.cut(
            "turns", high=high, low=low, x=x, trigonometric=trigonometric, cosine=control.coordinate == Coordinate.COS,
            base=control.base, bits=control.bits, source=source, factor=factor, scale=scale, exp2=exp2, sign=sign,
            special=special, significand=significand, exponent=exponent,
        )  # fmt: skip

        turns = Signal(_TURN_BITS)
        quadrant = Signal(layout.QUADRANT_BITS)
        reduced = Signal(layout.REDUCED_BITS)
        place = Signal(layout.COORDINATE_BITS)
        segment = Signal(_MOST_BITS)
        t = Signal(layout.LOCAL_BITS)
        index = Signal(INDEX_BITS)
        m.d.comb += [
            turns.eq(Cat(low[: _TURN_BITS - _HALF_WINDOW], high + low[_TURN_BITS - _HALF_WINDOW :])),
            quadrant.eq(turns[layout.REDUCED_BITS :] + cosine),
            # In odd quadrants the position counts backwards.
            reduced.eq(Mux(quadrant[0], ~turns[: layout.REDUCED_BITS], turns[: layout.REDUCED_BITS])),
            place.eq(Mux(trigonometric, reduced[-layout.COORDINATE_BITS :], x)),
            index.eq(base + segment),
        ]
        with m.Switch(bits):
            for count in range(_MOST_BITS + 1):
                with m.Case(count):
                    above = layout.COORDINATE_BITS - count
                    m.d.comb += [segment.eq(place[above:]), t.eq(place[above - layout.LOCAL_BITS : above])]
        reversed_sign = Mux(factor == Factor.REDUCED, sign ^ quadrant[1], sign)
        outputs = pipeline.cut(
            "segment", significand=significand, exponent=exponent, index=index, t=t, reduced=reduced, source=source,
            factor=factor, scale=scale, exp2=exp2, sign=reversed_sign, special=special,
        )  # fmt: skip
        ports = (self.significand, self.exponent, self.index, self.t, self.reduced, self.source, self.factor,
                 self.scale, self.exp2, self.sign, self.special)  # fmt: skip
        m.d.comb += [port.eq(value) for port, value in zip(ports, outputs, strict=True)]
        return m

    def _results(self, m, control, negative, border, infinite, nan):
        """What step 10 makes of the control row: sign, special, source, factor, scale, exp2."""
        sign, exp2 = Signal(), Signal()
        special = Signal(SpecialCode)
        source, factor, scale = Signal(Source), Signal(Factor), Signal(Scale)
        entry = data.View(_Entry, self.tables.special_row)
        m.d.comb += [
            sign.eq(control.negate),
            special.eq(SpecialCode.NONE),
            source.eq(control.source),
            factor.eq(control.factor),
            scale.eq(control.scale),
            exp2.eq(control.exp2),
        ]
        with m.If(nan):
            m.d.comb += [special.eq(SpecialCode.NAN), source.eq(Source.TABLE)]
        with m.Elif(border):
            m.d.comb += [
                special.eq(entry.special),
                sign.eq(entry.sign),
                source.eq(Source.TABLE),
                factor.eq(Factor.ONE),
                scale.eq(Scale.NONE),
                exp2.eq(0),
            ]
            with m.If(entry.special == SpecialCode.ALPHA):
                m.d.comb += [special.eq(SpecialCode.NONE), source.eq(Source.ALPHA)]
            with m.Elif(entry.special == SpecialCode.ALPHA_TIMES_Z):
                m.d.comb += [
                    special.eq(Mux(infinite, SpecialCode.INFINITY, SpecialCode.ZERO)),
                    sign.eq(negative),
                    source.eq(Source.ALPHA),
                ]
        with m.Elif(control.invalid):
            m.d.comb += [special.eq(SpecialCode.NAN), source.eq(Source.TABLE)]
        return sign, special, source, factor, scale, exp2


_Entry = data.StructLayout({"special": SpecialCode, "sign": 1})
"""A row of the table of specials."""
