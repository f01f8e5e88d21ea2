"""Number formats, shared by hardware and software.

Sources: IEEE 754 (FP32, FP16), the public definitions of BF16 and TF32, and the IEEE-like FP8 formats documented for
NeuronCore-v2: E4M3 with maximum 240 (not the OCP "FN" variant with 448), E5M2, E3M4. Every float format here has
subnormals, both infinities and NaN.
"""

from dataclasses import dataclass

__all__ = [
    "BF16", "FORMATS", "FP8E3M4", "FP8E4M3", "FP8E5M2", "FP16", "FP32", "INT8", "INT16", "INT32", "MAC_FORMATS",
    "MATMUL_FORMATS", "NARROW_FLOATS", "TF32", "UINT8", "UINT16", "UINT32", "FloatFormat", "Format", "IntFormat",
    "format_named", "format_of", "matmul_formats",
]  # fmt: skip


@dataclass(frozen=True)
class FloatFormat:
    """Format with sign, exponent and mantissa, from the most to the least significant bit.

    Arguments:
        name: name in programs and texts.
        code: code in instructions.
        exponent_bits: width of the exponent field; all ones means infinity or NaN, zero means subnormal or zero.
        mantissa_bits: width of the mantissa field, without the hidden bit.
        padding_bits: low bits of the storage word that are always zero (a TF32 number occupies an FP32 word).
    """

    name: str
    code: int
    exponent_bits: int
    mantissa_bits: int
    padding_bits: int = 0

    is_float = True

    @property
    def bits(self) -> int:
        """Width of the storage word in bits."""
        return 1 + self.exponent_bits + self.mantissa_bits + self.padding_bits

    @property
    def bias(self) -> int:
        """Bias of the exponent field."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """Unbiased exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def max_exponent(self) -> int:
        """Unbiased exponent of the largest finite number."""
        return self.bias

    @property
    def precision(self) -> int:
        """Width of the significand in bits, with the hidden bit."""
        return self.mantissa_bits + 1

    @property
    def infinity(self) -> int:
        """Storage word of +Inf."""
        return ((1 << self.exponent_bits) - 1) << (self.mantissa_bits + self.padding_bits)

    @property
    def nan(self) -> int:
        """Storage word of the canonical NaN: positive, quiet, no payload."""
        return self.infinity | 1 << (self.mantissa_bits - 1 + self.padding_bits)

    @property
    def max(self) -> float:
        """Largest finite value."""
        return (2 - 2.0**-self.mantissa_bits) * 2.0**self.max_exponent


@dataclass(frozen=True)
class IntFormat:
    """Integer format of `bits` bits, in two's complement if `signed`; `name` is that of numpy's type."""

    name: str
    code: int
    bits: int
    signed: bool = True

    is_float = False

    @property
    def min(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def max(self) -> int:
        """Largest value."""
        return (1 << (self.bits - self.signed)) - 1


Format = FloatFormat | IntFormat

FP32 = FloatFormat("fp32", 0, 8, 23)
TF32 = FloatFormat("tf32", 1, 8, 10, padding_bits=13)
BF16 = FloatFormat("bf16", 2, 8, 7)
FP16 = FloatFormat("fp16", 3, 5, 10)
FP8E4M3 = FloatFormat("fp8e4m3", 4, 4, 3)
FP8E5M2 = FloatFormat("fp8e5m2", 5, 5, 2)
FP8E3M4 = FloatFormat("fp8e3m4", 6, 3, 4)
INT8 = IntFormat("int8", 7, 8)
INT16 = IntFormat("int16", 8, 16)
INT32 = IntFormat("int32", 9, 32)
UINT8 = IntFormat("uint8", 10, 8, signed=False)
UINT16 = IntFormat("uint16", 11, 16, signed=False)
UINT32 = IntFormat("uint32", 12, 32, signed=False)

FORMATS: dict[str, Format] = {
    f.name: f for f in (FP32, TF32, BF16, FP16, FP8E4M3, FP8E5M2, FP8E3M4, INT8, INT16, INT32, UINT8, UINT16, UINT32)
}
"""All formats by name, in the order of their codes."""

NARROW_FLOATS = tuple(f for f in FORMATS.values() if isinstance(f, FloatFormat) and f.precision < FP32.precision)
"""Floating-point formats with fewer significant bits than FP32."""

MAC_FORMATS: tuple[Format, ...] = (BF16, FP16, TF32, FP8E4M3, FP8E5M2, FP8E3M4, INT8)
"""Formats with a significand that fits the 12 bits of a processing element: one pass of the array each."""

MATMUL_FORMATS: tuple[Format, ...] = (*MAC_FORMATS, FP32)
"""Formats that the tensor engine multiplies; FP32 takes four passes."""


def matmul_formats(significand_bits: int) -> tuple[Format, ...]:
    """Return the formats that an array multiplies; an INT8 magnitude has 8 bits, half an FP32 significand 12."""
    whole = tuple(f for f in MAC_FORMATS if (f.precision if isinstance(f, FloatFormat) else f.bits) <= significand_bits)
    return whole + ((FP32,) if FP32.precision <= 2 * significand_bits else ())


def format_named(name: str) -> Format:
    """Return the format called `name`; raise ValueError if no format has this name."""
    if isinstance(name, str) and name in FORMATS:
        return FORMATS[name]
    raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {name!r}")


def format_of(code: int) -> Format:
    """Return the format with a code; raise ValueError if no format has this code."""
    for fmt in FORMATS.values():
        if fmt.code == code:
            return fmt
    raise ValueError(f"a format's code must be from 0 to {len(FORMATS) - 1}, not {code!r}")
