"""Edge decoder: converts a storage word of any matmul format to an operand.

The format only selects the positions of sign, exponent and mantissa; one datapath serves all. A word is read as
(-1)**sign * significand * 2**(exponent - 23) with a 24-bit significand; an integer has no hidden bit. The 24 bits are
normalised; `hi` is the upper 12. The lower 12 are normalised again to `lo`, which is zero except in FP32. The value is
hi + lo. FP32 operands are multiplied in passes: hi * hi, hi * lo, and so on. Normalising before the split makes hi zero
only if the value is zero: otherwise an infinity times a subnormal would become NaN in the pass hi * hi.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.operand import EXPONENT_BITS, OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FP32, FloatFormat, Format, IntFormat, matmul_formats

__all__ = ["EdgeDecoder"]


class _Fields(wiring.Component):
    """Field extraction: the only arithmetic is an integer's magnitude and the exponent offset.

    `exponent` is biased by OPERAND_BIAS; `significand` has `width` bits. `special` is a float's all-ones exponent,
    `payload` a nonzero mantissa.
    """

    def __init__(self, formats: tuple[Format, ...], width: int):
        self.formats = formats
        self.width = width
        outputs = {"sign": 1, "exponent": EXPONENT_BITS, "significand": width, "special": 1, "payload": 1}
        inputs = {"word": In(32), "format": In(FormatCode)}
        super().__init__(inputs | {name: Out(shape) for name, shape in outputs.items()})

    def elaborate(self, platform):
        m = Module()
        with m.Switch(self.format):
            for fmt in self.formats:
                with m.Case(FormatCode(fmt.code)):
                    m.d.comb += self._integer(fmt) if isinstance(fmt, IntFormat) else self._float(fmt)
        return m

    def _float(self, fmt: FloatFormat):
        mantissa_end = fmt.padding_bits + fmt.mantissa_bits
        mantissa = self.word[fmt.padding_bits : mantissa_end]
        field = self.word[mantissa_end : mantissa_end + fmt.exponent_bits]
        normal = field.any()
        return [
            self.sign.eq(self.word[fmt.bits - 1]),
            self.exponent.eq(Cat(field[0] | ~normal, field[1:]) + (OPERAND_BIAS - fmt.bias)),
            self.significand.eq(Cat(Const(0, self.width - fmt.precision), mantissa, normal)),
            self.special.eq(field.all()),
            # Padding bits count, so that a NaN truncated to the format does not become an infinity.
            self.payload.eq(self.word[:mantissa_end].any()),
        ]

    def _integer(self, fmt: IntFormat):
        value = self.word[: fmt.bits]
        sign = value[-1]
        return [
            self.sign.eq(sign),
            self.exponent.eq(OPERAND_BIAS + fmt.bits - 1),
            self.significand.eq(Cat(Const(0, self.width - fmt.bits), Mux(sign, -value, value)[: fmt.bits])),
        ]


class EdgeDecoder(wiring.Component):
    """Decoder from storage word to operand. Throughput: one word per cycle.

    Arguments:
        significand_bits: significand width of the operand, 8 or 12. With 8, significands have no lower half, and FP32,
            TF32 and FP16 are not supported.
        latency: cycles from word to operand, 0 to 2; out is combinational after the last register.

    Ports:
        word: the element, right-aligned; TF32 and FP32 use all 32 bits.
        format: one of `spec.formats.matmul_formats(significand_bits)`; otherwise the operand is undefined.
        half: 0 selects the upper 12 bits of the significand, 1 the lower 12, which are nonzero only in FP32.
        present: 0 masks the element: the operand is absent (flags of infinity and NaN set, all else zero).
        skip_zero: 1 makes a zero absent.
        out: the operand. Subnormals are normalised; zero has significand and exponent 0 and keeps its sign. An infinity
            or NaN sets its flag in the upper half, with a nonzero significand; its lower half is a zero of the same
            sign.
    """

    CUTS = {0: (), 1: ("whole",), 2: ("fields", "whole")}
    """Cuts of the pipeline that hold a register, by `latency`."""

    def __init__(self, significand_bits: int = SIGNIFICAND_BITS, latency: int = 0):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 0 to {max(self.CUTS)}, not {latency!r}")
        self.significand_bits = significand_bits
        self.latency = latency
        controls = {name: In(1) for name in ("half", "present", "skip_zero")}
        operand = Out(Operand(significand_bits))
        super().__init__({"word": In(32), "format": In(FormatCode), **controls, "out": operand})

    def elaborate(self, platform):
        m = Module()
        bits = self.significand_bits
        formats = matmul_formats(bits)
        halves = FP32 in formats
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        m.submodules.fields = fields = _Fields(formats, 2 * bits if halves else bits)
        m.d.comb += [fields.word.eq(self.word), fields.format.eq(self.format)]
        parts = cut(
            "fields", sign=fields.sign, exponent=fields.exponent, significand=fields.significand,
            special=fields.special, payload=fields.payload, half=self.half if halves else Const(0),
            present=self.present, skip_zero=self.skip_zero,
        )  # fmt: skip

        normal, shift = normalise(m, parts.significand, "whole")
        whole_exponent = Signal(EXPONENT_BITS)
        m.d.comb += whole_exponent.eq(parts.exponent - shift)
        whole = cut(
            "whole", normal=normal, exponent=whole_exponent, sign=parts.sign, special=parts.special,
            payload=parts.payload, half=parts.half, present=parts.present, skip_zero=parts.skip_zero,
        )  # fmt: skip

        significand, exponent, zero = Signal(bits), Signal(EXPONENT_BITS), Signal()
        m.d.comb += [
            significand.eq(whole.normal[-bits:]),
            exponent.eq(whole.exponent),
            # A normalised significand is zero exactly if its top bit is 0.
            zero.eq(~significand[-1] | (whole.special & whole.half)),
        ]
        if halves:
            low, low_shift = normalise(m, whole.normal[:bits], "low")
            with m.If(whole.half):
                m.d.comb += [significand.eq(low), exponent.eq(whole.exponent - bits - low_shift)]

        with m.If(~whole.present | (whole.skip_zero & zero)):
            m.d.comb += [self.out.inf.eq(1), self.out.nan.eq(1)]
        with m.Else():
            m.d.comb += [
                self.out.sign.eq(whole.sign),
                self.out.inf.eq(whole.special & ~whole.half & ~whole.payload),
                self.out.nan.eq(whole.special & ~whole.half & whole.payload),
            ]
            with m.If(~zero):
                m.d.comb += [self.out.significand.eq(significand), self.out.exponent.eq(exponent)]
        return m
