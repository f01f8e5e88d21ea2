"""The first part of the activation datapath: what z is, which polynomial that takes, and where in it z lies.

Steps 1 to 4 of docs/activation.md, and of step 10 what does not depend on alpha.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.enumeration import typed_enum
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


_SPECIALS = {special.name: special.value for special in layout.Special}

SpecialCode = typed_enum("SpecialCode", _SPECIALS | {"NONE": 15}, 4)
"""Codes of `spec.functions.layout.Special`, and that the result is none of them."""


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
        cut = Pipeline(m, self.CUTS).cut
        number = decode(m, self.z, "number")
        z = cut("decode", number=number, function=self.function)
        self._look_up(m, z)
        number = z.number
        ordinary = cut(
            "control", significand=number.significand, exponent=number.exponent, negative=number.sign,
            border=number.zero | number.infinite, infinite=number.infinite, nan=number.nan,
        )  # fmt: skip
        control = Signal(ControlRow)
        m.d.comb += control.eq(self.tables.control_row)
        turned = cut("turns", **self._places(m, control, ordinary), **self._results(m, control, ordinary))
        outputs = cut("segment", **self._segment(m, turned))
        m.d.comb += [getattr(self, name).eq(value) for name, value in vars(outputs).items()]
        return m

    def _look_up(self, m: Module, z) -> None:
        """Ask the tables for what belongs to a number and its function."""
        exponent, negative, function = z.number.exponent, z.number.sign, z.function
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
            self.tables.special_address.eq(Cat(negative, z.number.infinite, function)),
            self.tables.window_high_address.eq(exponent),
            self.tables.window_low_address.eq(exponent),
        ]

    def _places(self, m: Module, control, z) -> dict[str, Value]:
        """What chooses the segment: z itself, or the quarter turns in it, two products that are not added up yet."""
        high, low = Signal(_HALF_WINDOW), Signal(_LOW_BITS)
        shift = Signal(range(_LARGEST_SHIFT + 1))
        distance, binade = Signal(EXPONENT), Signal(EXPONENT)
        linear, binades = Signal(layout.COORDINATE_BITS), Signal(layout.COORDINATE_BITS)
        x = Signal(layout.COORDINATE_BITS)
        widened = Cat(Const(0, layout.COORDINATE_BITS - FP32.precision), z.significand)
        fraction = Cat(Const(0, 1), widened[:-1])
        cosine = control.coordinate == Coordinate.COS
        m.d.comb += [
            high.eq(z.significand * self.tables.window_high_row),
            low.eq((z.significand * self.tables.window_low_row) >> _CUT),
            distance.eq(layout.LOW_EXPONENT - z.exponent),
            shift.eq(Mux(distance > _LARGEST_SHIFT, _LARGEST_SHIFT, distance)),
            linear.eq(widened >> shift),
            binade.eq(z.exponent - layout.HIGH_EXPONENT),
            binades.eq(Cat(fraction[layout.BINADES_BITS :], binade[: layout.BINADES_BITS])),
            x.eq(fraction),
        ]
        with m.If(control.coordinate == Coordinate.OUTER):
            with m.If(z.exponent < 0):
                m.d.comb += x.eq(linear)
            with m.Elif(binade[layout.BINADES_BITS :].any()):
                m.d.comb += x.eq(-1)
            with m.Else():
                m.d.comb += x.eq(binades)
        return {
            "high": high, "low": low, "x": x, "trigonometric": (control.coordinate == Coordinate.SIN) | cosine,
            "cosine": cosine, "base": control.base, "bits": control.bits, "significand": z.significand,
            "exponent": z.exponent,
        }  # fmt: skip

    def _segment(self, m: Module, z) -> dict[str, Value]:
        """The segment and the place in it; the outputs by name."""
        turns, quadrant = Signal(_TURN_BITS), Signal(layout.QUADRANT_BITS)
        reduced = Signal(layout.REDUCED_BITS)
        place = Signal(layout.COORDINATE_BITS)
        segment, index = Signal(_MOST_BITS), Signal(INDEX_BITS)
        t = Signal(layout.LOCAL_BITS)
        above_low = _TURN_BITS - _HALF_WINDOW
        m.d.comb += [
            turns.eq(Cat(z.low[:above_low], z.high + z.low[above_low:])),
            quadrant.eq(turns[layout.REDUCED_BITS :] + z.cosine),
            # In odd quadrants the position counts backwards.
            reduced.eq(Mux(quadrant[0], ~turns[: layout.REDUCED_BITS], turns[: layout.REDUCED_BITS])),
            place.eq(Mux(z.trigonometric, reduced[-layout.COORDINATE_BITS :], z.x)),
            index.eq(z.base + segment),
        ]
        with m.Switch(z.bits):
            for count in range(_MOST_BITS + 1):
                with m.Case(count):
                    above = layout.COORDINATE_BITS - count
                    m.d.comb += [segment.eq(place[above:]), t.eq(place[above - layout.LOCAL_BITS : above])]
        return {
            "significand": z.significand, "exponent": z.exponent, "index": index, "t": t, "reduced": reduced,
            "source": z.source, "factor": z.factor, "scale": z.scale, "exp2": z.exp2,
            "sign": Mux(z.factor == Factor.REDUCED, z.sign ^ quadrant[1], z.sign), "special": z.special,
        }  # fmt: skip

    def _results(self, m: Module, control, z) -> dict[str, Value]:
        """What step 10 makes of the control row."""
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
        with m.If(z.nan):
            m.d.comb += [special.eq(SpecialCode.NAN), source.eq(Source.TABLE)]
        with m.Elif(z.border):
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
                    special.eq(Mux(z.infinite, SpecialCode.INFINITY, SpecialCode.ZERO)),
                    sign.eq(z.negative),
                    source.eq(Source.ALPHA),
                ]
        with m.Elif(control.invalid):
            m.d.comb += [special.eq(SpecialCode.NAN), source.eq(Source.TABLE)]
        return {"sign": sign, "special": special, "source": source, "factor": factor, "scale": scale, "exp2": exp2}


_Entry = data.StructLayout({"special": SpecialCode, "sign": 1})
"""A row of the table of specials."""
