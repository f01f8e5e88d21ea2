"""Result stage of the activation datapath: power of two, rounding, and special results.

Implements steps 8 to 10 of docs/activation.md.
"""

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.multiply import halves_product, join_halves
from neuroncore_rtl.hdl.arith.normalise import normalise_partly
from neuroncore_rtl.hdl.arith.pack import aligned_fp32, rounded_fp32
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.scalar.argument import SpecialCode
from neuroncore_rtl.hdl.scalar.product import POINT_EXPONENT, SUM
from neuroncore_rtl.hdl.scalar.tables import TableReader
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import layout

__all__ = ["SERIES_BITS", "ResultStage"]

_LOG_BITS = 41
"""Width of U of docs/activation.md, the binary logarithm of a result."""
_FRACTION_BITS = layout.EXP2_INDEX_BITS + layout.LOCAL_BITS
_LOG_POINT = layout.SUM_POINT - _FRACTION_BITS
_FARTHEST = 63
_MAGNITUDE_BITS = SUM.width - 1
_KEPT = layout.POINT
"""Bits kept of a significand before rounding; the bits below them form one sticky bit."""
_COARSE, _FINE = range(3, 6), range(3)
"""Bits of the normalising shift amount that each of two steps applies."""
_STAGED = range(4, 6), range(2, 4), range(2)
"""Bits of the normalising shift amount in three steps, each with a pipeline stage."""
SERIES_BITS = 29
"""Width of the factor of t in the polynomial of the power of two, as wide as the table needs."""
_LINEAR_HALF, _SERIES_HALF = 12, 15
"""Widths of the lower halves of the factors in the power of two's staged products."""
_GUARDED = layout.LOCAL_BITS + layout.COEFFICIENT_GUARD


class ResultStage(wiring.Component):
    """Result stage: FP32 of S * 2**(X - 53), or of 2 to that power. One per cycle.

    Arguments:
        staged: give every step of the computation a separate pipeline stage.

    Ports:
        exp2: the result is 2 to the power S * 2**(X - 53), else S * 2**(X - 53).
        total: signed S if `exp2`, else the magnitude of S.
        point: X, the exponent of S.
        sign: sign of the result.
        special: special value that replaces the computed result, or NONE.
        tables: reads exp2_c2_c1, exp2_c0; the other addresses stay 0.
        out: FP32 word, a register, `latency` cycles later.
    """

    CUTS = {
        False: ("power", "linear", "quadratic", "round", "out"),
        True: (
            "places", "coarse", "power", "linear", "quadratic_parts", "quadratic", "power_parts", "round", "shift",
            "out",
        ),
    }  # fmt: skip
    """Cuts of the pipeline that hold a register, by `staged`."""

    total: In(SUM)
    point: In(POINT_EXPONENT)
    exp2: In(1)
    sign: In(1)
    special: In(SpecialCode)
    tables: Out(TableReader())
    out: Out(32)

    def __init__(self, staged: bool = False):
        self.staged = staged
        self.latency = len(self.CUTS[staged])
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.staged]).cut
        tables = self.tables
        places = self._places(m)
        given = cut(
            "places", total=self.total, point=self.point, exp2=self.exp2, sign=self.sign, special=self.special,
            places=places,
        )  # fmt: skip
        if self.staged:
            given = cut("coarse", **self._shift_part(m, self._word_of(given), _STAGED[0]))
            total = cut("power", **self._shift_part(m, given, _STAGED[1]))
        else:
            total = cut("power", **self._part(m, given))
        linear = cut("linear", **self._fields(m, total))

        later = {name: value for name, value in vars(linear).items() if name != "index"}
        if not self.staged:
            m.d.comb += tables.exp2_c0_address.eq(linear.index)
        else:
            later["index"] = linear.index
        c2 = tables.exp2_c2_c1_row[: layout.EXP2_FIELDS["c2"]]
        c1 = tables.exp2_c2_c1_row[layout.EXP2_FIELDS["c2"] :]
        parts = halves_product(linear.t, c2, _LINEAR_HALF, self.staged)
        z = cut("quadratic_parts", **parts, c1=c1, **later)
        series = Signal(SERIES_BITS)
        m.d.comb += series.eq(join_halves(z, _LINEAR_HALF, z.c1, layout.LOCAL_BITS))
        z = cut("quadratic", series=series, **{name: getattr(z, name) for name in later})

        if self.staged:
            m.d.comb += tables.exp2_c0_address.eq(z.index)
            later.pop("index")
        later.pop("t")
        parts = halves_product(z.t, z.series, _SERIES_HALF, self.staged)
        z = cut("power_parts", **parts, **{name: getattr(z, name) for name in later})
        power, exp2 = Signal(_KEPT + 1), z.exp2
        m.d.comb += power.eq(join_halves(z, _SERIES_HALF, tables.exp2_c0_row, _GUARDED))
        number = cut(
            "round", significand=Mux(exp2, power[1:], z.significand), sticky=Mux(exp2, power[0], z.sticky),
            field=z.field, sign=z.sign, special=z.special,
        )  # fmt: skip
        aligned = aligned_fp32(m, number.significand, number.field, number.sticky)
        number = cut("shift", **aligned, sign=number.sign, special=number.special)
        m.d.comb += self.out.eq(cut("out", word=self._word(m, number)).word)
        return m

    def _places(self, m: Module) -> Signal:
        places, shift = Signal(POINT_EXPONENT), Signal(range(_FARTHEST + 1))
        m.d.comb += [
            places.eq(_LOG_POINT - self.point),
            shift.eq(Mux(places > _FARTHEST, _FARTHEST, places)),
        ]
        return shift

    def _part(self, m: Module, given) -> dict[str, Value]:
        logarithm = Signal(signed(_LOG_BITS))
        m.d.comb += logarithm.eq(given.total >> given.places)
        normal, zeros, _ = normalise_partly(m, given.total[:_MAGNITUDE_BITS], "magnitude", _COARSE, None, None)
        later = {name: getattr(given, name) for name in ("point", "exp2", "sign", "special")}
        return later | {"logarithm": logarithm, "normal": normal, "zeros": zeros}

    def _word_of(self, given) -> SimpleNamespace:
        """Return the word for one shifter that serves both cases.

        It normalises a magnitude by a shift to higher bits; a logarithm is bit-reversed, so that the same shift moves
        it to lower bits.
        """
        fill = given.exp2 & given.total[-1]
        word = Mux(given.exp2, given.total[::-1], Cat(Const(0, 1), given.total[:_MAGNITUDE_BITS]))
        later = {name: getattr(given, name) for name in ("point", "exp2", "sign", "special")}
        return SimpleNamespace(**later, word=word, fill=fill, shift=given.places, zeros=Const(0, 0))

    def _shift_part(self, m: Module, z, digits: range) -> dict[str, Value]:
        word, zeros = _shifted(m, z.word, digits, z.shift, z.exp2, z.fill)
        return vars(z) | {"word": word, "zeros": Cat(zeros, z.zeros)}

    def _normalise(self, m: Module, total) -> tuple[Value, Value, Value]:
        if not self.staged:
            normal, fine, _ = normalise_partly(m, total.normal, "magnitude", _FINE, None, None)
            return total.logarithm, normal, Cat(fine, total.zeros)
        word, fine = _shifted(m, total.word, _STAGED[2], total.shift, total.exp2, total.fill)
        return word[::-1][:_LOG_BITS].as_signed(), word[1:], Cat(fine, total.zeros)

    def _fields(self, m: Module, total) -> dict[str, Value]:
        logarithm, normal, zeros = self._normalise(m, total)
        index, t = logarithm[layout.LOCAL_BITS : _FRACTION_BITS], logarithm[: layout.LOCAL_BITS]
        whole = logarithm[_FRACTION_BITS:].as_signed()
        m.d.comb += self.tables.exp2_c2_c1_address.eq(index)
        field, power_field = Signal(POINT_EXPONENT), Signal(POINT_EXPONENT)
        top = _MAGNITUDE_BITS - 1 - layout.SUM_POINT + FP32.bias
        m.d.comb += [
            # A zero gets a field so low that it rounds to zero.
            field.eq(Mux(normal[-1], total.point + top - zeros, -512)),
            power_field.eq(whole + FP32.bias),
        ]
        return {
            "significand": normal[-_KEPT:], "sticky": normal[:-_KEPT].any(),
            "field": Mux(total.exp2, power_field, field), "t": t, "index": index, "exp2": total.exp2,
            "sign": total.sign, "special": total.special,
        }  # fmt: skip

    def _word(self, m: Module, number) -> Signal:
        rounded = rounded_fp32(m, number)
        word = Signal(32)
        with m.Switch(number.special):
            for entry in layout.Special:
                if entry.word is not None and entry is not layout.Special.NAN:
                    with m.Case(SpecialCode(entry.value)):
                        m.d.comb += word.eq(Cat(Const(entry.word, 31), number.sign))
            with m.Case(SpecialCode.NAN):
                m.d.comb += word.eq(FP32.nan)
            with m.Default():
                m.d.comb += word.eq(Cat(rounded, number.sign))
        return word


def _shifted(m: Module, word: Value, digits: range, shift: Value, given: Value, fill: Value) -> tuple[Value, Value]:
    """Shift left by the bits `digits` of `shift` if `given`, else by those of the number of leading zeros.

    Returns:
        The shifted word, with `fill` in its lowest bits, and these bits of the shift amount.
    """
    taken = []
    for place in reversed(digits):
        step = 1 << place
        shifts, shifted = Signal(name=f"shifts{step}"), Signal(len(word), name=f"by{step}")
        m.d.comb += [
            shifts.eq(Mux(given, shift[place], ~word[-step:].any())),
            shifted.eq(Mux(shifts, Cat(fill.replicate(step), word[:-step]), word)),
        ]
        word = shifted
        taken.insert(0, shifts)
    return word, Cat(taken)
