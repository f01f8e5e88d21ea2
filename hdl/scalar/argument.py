"""Argument stage of the activation datapath: decode, control row, table segment and position in the segment.

Implements steps 1 to 4 of docs/activation.md, and the part of step 10 that is independent of alpha.
"""

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.multiply import halves_product, join_halves
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.hdl.scalar.number import EXPONENT, decode_stage1, decode_stage2, decode_stage3
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, ControlRow, Coordinate, Factor, Scale, Source, TableReader
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import layout
from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS

__all__ = ["INDEX_BITS", "REDUCED", "Argument", "SpecialCode"]

INDEX_BITS = layout.CONTROL_FIELDS["base"]
"""Bits of a segment's index."""

REDUCED = layout.FACTOR_BITS + layout.REDUCED_ZEROS
"""Upper bits kept of the position in a quadrant: a factor after its leading zeros needs no more."""

_TURN_BITS = layout.REDUCED_BITS + layout.QUADRANT_BITS
_HALF_WINDOW = layout.WINDOW_BITS // 2
_CUT = layout.WINDOW_BITS - _TURN_BITS
"""Number of low bits dropped from the product of significand and window."""
_LOW_BITS = FP32.precision + _HALF_WINDOW - _CUT
"""Bits kept of the product with the window's lower half, including those that overlap the other product."""

_WINDOW_HALF = 17
"""Width of half a window digit in the staged products. The upper half of the significand is narrower."""

_TOP_BITS = layout.WINDOW_BITS - 4 * _WINDOW_HALF
"""Bits of the window above its two digits; only as many low bits of their product are needed."""

_MOST_BITS = layout.COORDINATE_BITS - layout.LOCAL_BITS
"""Largest number of bits of x that select a segment."""

_LARGEST_SHIFT = 31


_SPECIALS = {special.name: special.value for special in layout.Special}

SpecialCode = typed_enum("SpecialCode", _SPECIALS | {"NONE": 15}, 4)
"""Codes of `spec.functions.layout.Special`, and NONE for the computed result."""


class Argument(wiring.Component):
    """Argument stage: maps z and a function to a segment, a position in it, and control bits. One per cycle.

    The outputs are registers, `latency` cycles later.

    Arguments:
        staged: give every step of the computation a separate pipeline stage, for a faster clock.
        trigonometry: build the argument reduction for trigonometric functions, a product with a window of the bits of 2
            / pi.

    Ports:
        z: argument of the function, an FP32 word.
        function: code of the function.
        tables: reads control, special, window_high, window_low; other addresses stay 0.
        significand, exponent: m and e of docs/activation.md; undefined if z is zero, infinite or NaN.
        index, t: index of the segment, a table row; position in the segment.
        reduced: the reduced argument r of docs/activation.md, without low bits that no factor uses.
        source, factor, scale, exp2: fields of the control row, changed to output alpha if the result is alpha, or alpha
            * z with z zero or infinite.
        sign: the sign s of docs/activation.md.
        special: value that replaces the computed result; for alpha * z, the special value of |z|.
    """

    CUTS = {
        False: ("decode", "control", "turns", "segment"),
        True: ("leading", "normal", "decode", "control", "places", "turns", "quadrant", "segment"),
    }
    """Cuts of the pipeline that hold a register, by `staged`."""

    z: In(32)
    function: In(FUNCTION_BITS)
    tables: Out(TableReader())
    significand: Out(FP32.precision)
    exponent: Out(EXPONENT)
    index: Out(INDEX_BITS)
    t: Out(layout.LOCAL_BITS)
    reduced: Out(REDUCED)
    source: Out(Source)
    factor: Out(Factor)
    scale: Out(Scale)
    exp2: Out(1)
    sign: Out(1)
    special: Out(SpecialCode)

    def __init__(self, staged: bool = False, trigonometry: bool = True):
        self.staged, self.trigonometry = staged, trigonometry
        self.latency = len(self.CUTS[staged])
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.staged]).cut
        z = cut("leading", **vars(decode_stage1(m, self.z, "number")), function=self.function)
        entering = cut("normal", **decode_stage2(m, z, "number"))
        z = cut("decode", number=decode_stage3(m, entering, "number"), function=entering.function)
        self._look_up(m, z)
        number = z.number
        ordinary = cut(
            "control", significand=number.significand, exponent=number.exponent, negative=number.sign,
            border=number.zero | number.infinite, infinite=number.infinite, nan=number.nan, **self._reach(m, number),
        )  # fmt: skip
        control = Signal(ControlRow)
        m.d.comb += control.eq(self.tables.control_row)
        windows = self._windows(m, ordinary) if self.trigonometry else {}
        places = self._places(m, control, ordinary)
        turned = cut("places", **places, **self._results(m, control, ordinary), **windows)
        turned = cut("turns", **self._join_windows(turned))
        turned = cut("quadrant", **self._add_turns(m, turned))
        outputs = cut("segment", **self._segment(m, turned))
        m.d.comb += [getattr(self, name).eq(value) for name, value in vars(outputs).items()]
        return m

    def _look_up(self, m: Module, z) -> None:
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

    def _reach(self, m: Module, number) -> dict[str, Value]:
        """Compute two values for arguments outside the exponents with table rows.

        Below these exponents: the right shift of the coordinate. Above: the number of the binade.
        """
        shift = Signal(range(_LARGEST_SHIFT + 1))
        distance, binade = Signal(EXPONENT), Signal(EXPONENT)
        m.d.comb += [
            distance.eq(layout.LOW_EXPONENT - number.exponent),
            shift.eq(Mux(distance > _LARGEST_SHIFT, _LARGEST_SHIFT, distance)),
            binade.eq(number.exponent - layout.HIGH_EXPONENT),
        ]
        return {
            "shift": shift, "binade": binade[: layout.BINADES_BITS], "beyond": binade[layout.BINADES_BITS :].any(),
        }  # fmt: skip

    def _windows(self, m: Module, z) -> dict[str, Value]:
        if not self.staged:
            high, low = Signal(_HALF_WINDOW), Signal(_LOW_BITS)
            m.d.comb += [
                high.eq(z.significand * self.tables.window_high_row),
                low.eq((z.significand * self.tables.window_low_row) >> _CUT),
            ]
            return {"high": high, "low": low}
        window = Cat(self.tables.window_low_row, self.tables.window_high_row)
        products = {"top": (z.significand[:_TOP_BITS] * window[-_TOP_BITS:])[:_TOP_BITS]}
        for number in range(2):
            part = window[2 * number * _WINDOW_HALF : 2 * (number + 1) * _WINDOW_HALF]
            products |= {
                f"{name}{number}": value for name, value in halves_product(z.significand, part, _WINDOW_HALF).items()
            }
        return products

    def _join_windows(self, z) -> dict[str, Value]:
        values = dict(vars(z))
        if not (self.trigonometry and self.staged):
            return values
        for number in range(2):
            parts = SimpleNamespace(**{name: values.pop(f"{name}{number}") for name in ("low", "high", "cross")})
            values[f"part{number}"] = join_halves(parts, _WINDOW_HALF, Const(0, 1), 0)
        return values

    def _add_turns(self, m: Module, z) -> dict[str, Value]:
        """Add the products of both digits.

        The sum is |z| * 2 / pi modulo 4: the quadrant, and the position in the quadrant.
        """
        values = dict(vars(z))
        if not self.trigonometry:
            return values
        turns = Signal(_TURN_BITS)
        if self.staged:
            part0, part1, top = (values.pop(name) for name in ("part0", "part1", "top"))
            digit = 2 * _WINDOW_HALF
            upper = (part0[digit:] + part1 + (top << digit))[: layout.WINDOW_BITS - digit]
            m.d.comb += turns.eq(Cat(part0[_CUT:digit], upper))
        else:
            high, low = values.pop("high"), values.pop("low")
            above_low = _TURN_BITS - _HALF_WINDOW
            m.d.comb += turns.eq(Cat(low[:above_low], high + low[above_low:]))
        return values | {"turns": turns}

    def _places(self, m: Module, control, z) -> dict[str, Value]:
        linear, binades = Signal(layout.COORDINATE_BITS), Signal(layout.COORDINATE_BITS)
        x = Signal(layout.COORDINATE_BITS)
        widened = Cat(Const(0, layout.COORDINATE_BITS - FP32.precision), z.significand)
        fraction = Cat(Const(0, 1), widened[:-1])
        cosine = control.coordinate == Coordinate.COS
        m.d.comb += [
            linear.eq(widened >> z.shift),
            binades.eq(Cat(fraction[layout.BINADES_BITS :], z.binade)),
            x.eq(fraction),
        ]
        with m.If(control.coordinate == Coordinate.OUTER):
            with m.If(z.exponent < 0):
                m.d.comb += x.eq(linear)
            with m.Elif(z.beyond):
                m.d.comb += x.eq(-1)
            with m.Else():
                m.d.comb += x.eq(binades)
        return {
            "x": x, "trigonometric": (control.coordinate == Coordinate.SIN) | cosine,
            "cosine": cosine, "base": control.base, "bits": control.bits, "significand": z.significand,
            "exponent": z.exponent,
        }  # fmt: skip

    def _segment(self, m: Module, z) -> dict[str, Value]:
        place, reduced, half_turn = z.x, Const(0, layout.REDUCED_BITS), 0
        segment, index = Signal(_MOST_BITS), Signal(INDEX_BITS)
        t = Signal(layout.LOCAL_BITS)
        if self.trigonometry:
            quadrant, reduced = Signal(layout.QUADRANT_BITS), Signal(layout.REDUCED_BITS)
            place = Signal(layout.COORDINATE_BITS)
            m.d.comb += [
                quadrant.eq(z.turns[layout.REDUCED_BITS :] + z.cosine),
                # In odd quadrants the position runs backwards.
                reduced.eq(z.turns[: layout.REDUCED_BITS] ^ quadrant[0].replicate(layout.REDUCED_BITS)),
                place.eq(Mux(z.trigonometric, reduced[-layout.COORDINATE_BITS :], z.x)),
            ]
            half_turn = quadrant[1]
        m.d.comb += index.eq(z.base + segment)
        shifted = place
        for digit in range(_MOST_BITS.bit_length()):
            moved = Signal(layout.COORDINATE_BITS + (2 << digit) - 1, name=f"moved{digit}")
            m.d.comb += moved.eq(Mux(z.bits[digit], shifted << (1 << digit), shifted))
            shifted = moved
        m.d.comb += [segment.eq(shifted[layout.COORDINATE_BITS :]), t.eq(shifted[_MOST_BITS : layout.COORDINATE_BITS])]
        return {
            "significand": z.significand, "exponent": z.exponent, "index": index, "t": t,
            "reduced": reduced[-REDUCED:],
            "source": z.source, "factor": z.factor, "scale": z.scale, "exp2": z.exp2,
            "sign": Mux(z.factor == Factor.REDUCED, z.sign ^ half_turn, z.sign), "special": z.special,
        }  # fmt: skip

    def _results(self, m: Module, control, z) -> dict[str, Value]:
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
"""Row of the table of special cases."""
