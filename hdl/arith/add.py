"""IEEE 754 binary32 addition with one rounding, to nearest even.

The operand of smaller magnitude is aligned below the larger one with guard, round and sticky bits: 27 bits, 28 with the
carry. A leading-zero count normalises the sum. The shift is limited by the exponent, so subnormal results need no
separate path.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32, round_fp32
from neuroncore_rtl.hdl.arith.normalise import normalise_partly
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Adder"]

_GUARD = 3
_WIDTH = FP32.precision + _GUARD + 1
_PLACES = (_WIDTH - 1).bit_length()
_COARSE, _FINE = range(2, _PLACES), range(2)
"""Bits of the normalising shift amount: those of the coarse step, and those of the fine step after it."""
_TAIL = 28
"""Bits kept below the sticky bit during alignment, so that shifts of up to 31 lose nothing."""


class Fp32Adder(wiring.Component):
    """FP32 adder: out = a + b. Throughput: one addition per cycle.

    Subnormals are kept. NaN results are canonical, Inf - Inf is NaN, x - x is +0.

    Arguments:
        latency: cycles from a, b to out, 1 to 7; out is a register.

    Ports:
        a, b: FP32 words.
        out: FP32 word of the sum, `latency` cycles later.
    """

    CUTS = {
        1: ("out",),
        2: ("sum", "out"),
        3: ("swap", "sum", "out"),
        4: ("swap", "sum", "normalise", "out"),
        5: ("input", "swap", "sum", "normalise", "out"),
        6: ("input", "swap", "align", "sum", "normalise", "out"),
        7: ("input", "swap", "align", "sum", "coarse", "normalise", "out"),
    }
    """Cuts of the pipeline that hold a register, by `latency`."""

    a: In(32)
    b: In(32)
    out: Out(32)

    def __init__(self, latency: int = 2):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 1 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        given = cut("input", a=self.a, b=self.b)
        operands = cut("swap", **self._swap(m, given.a, given.b))
        aligned = cut("align", **self._align(m, operands))
        total = cut("sum", **self._sum(m, aligned))
        coarse = cut("coarse", **self._coarse(m, total))
        normal = cut("normalise", **self._normalise(m, coarse))
        word = round_fp32(m, normal.total, normal.field, normal.sign, normal.inf, normal.nan)
        m.d.comb += self.out.eq(cut("out", word=word).word)
        return m

    def _swap(self, m: Module, a: Value, b: Value) -> dict[str, Value]:
        swap = Signal()
        larger, smaller = Signal(32), Signal(32)
        large, small = Fp32(larger), Fp32(smaller)
        distance, exponent = Signal(FP32.exponent_bits), Signal(FP32.exponent_bits)
        subtract, inf, nan = Signal(), Signal(), Signal()
        m.d.comb += [
            swap.eq(a[:31] < b[:31]),
            larger.eq(Mux(swap, b, a)),
            smaller.eq(Mux(swap, a, b)),
            exponent.eq(large.exponent),
            distance.eq(exponent - small.exponent),
            subtract.eq(large.sign ^ small.sign),
            inf.eq(large.special),
            # If any operand is NaN, the operand of larger magnitude is NaN. Two infinities have equal fields.
            nan.eq(inf & (large.fraction.any() | (small.special & subtract))),
        ]
        return {
            "large": large.significand, "small": small.significand, "distance": distance, "exponent": exponent,
            "sign": large.sign, "subtract": subtract, "inf": inf, "nan": nan,
        }  # fmt: skip

    def _align(self, m: Module, operands) -> dict[str, Value]:
        near, far = operands.distance[:5], operands.distance[5:].any()
        shifted = Signal(_TAIL + _GUARD + FP32.precision)
        aligned = Signal(_WIDTH)
        m.d.comb += [
            shifted.eq(Cat(Const(0, _TAIL + _GUARD), operands.small) >> near),
            aligned.eq(Mux(far, operands.small.any(), Cat(shifted[: _TAIL + 1].any(), shifted[_TAIL + 1 :]))),
        ]
        around = {name: value for name, value in vars(operands).items() if name not in ("small", "distance")}
        return around | {"aligned": aligned}

    def _sum(self, m: Module, operands) -> dict[str, Value]:
        total = Signal(_WIDTH)
        widened = Cat(Const(0, _GUARD), operands.large)
        m.d.comb += total.eq(Mux(operands.subtract, widened - operands.aligned, widened + operands.aligned))
        return {
            "total": total, "exponent": operands.exponent, "sign": operands.sign, "subtract": operands.subtract,
            "inf": operands.inf, "nan": operands.nan,
        }  # fmt: skip

    def _coarse(self, m: Module, total) -> dict[str, Value]:
        """Apply the higher bits of the normalising shift; an exact zero sum of operands with opposite signs is +0."""
        exponent = total.exponent
        fewer = exponent[_PLACES:].any()
        coarse, zeros, fewer = normalise_partly(m, total.total, "coarse", _COARSE, exponent, fewer)
        sign = total.sign & ~(total.subtract & ~total.total.any())
        return {
            "total": coarse, "zeros": zeros, "fewer": fewer, "exponent": exponent, "sign": sign, "inf": total.inf,
            "nan": total.nan,
        }  # fmt: skip

    def _normalise(self, m: Module, coarse) -> dict[str, Value]:
        """Apply the lower bits of the normalising shift, and compute the exponent field, which limits the shift."""
        # If the shift is limited by the exponent, the result's exponent field is 1, or 0 if the top bit stays zero.
        field = Signal(FP32.exponent_bits + 1)
        normal, zeros, _ = normalise_partly(m, coarse.total, "fine", _FINE, coarse.exponent, coarse.fewer)
        shift = Cat(zeros, coarse.zeros)
        m.d.comb += field.eq(Mux(normal[-1], coarse.exponent + 1 - shift, 0))
        return {"total": normal, "field": field, "sign": coarse.sign, "inf": coarse.inf, "nan": coarse.nan}
