"""The number that selects a format on a port, as a typed enumeration; and the size of an element of a format."""

from collections.abc import Iterable

from amaranth import Module, Signal, unsigned
from amaranth.lib import enum

from neuroncore_rtl.spec import formats

__all__ = ["FormatCode", "element_size"]


class FormatCode(enum.Enum, shape=unsigned(4)):
    """Codes of `spec.formats`; waveforms show the names."""

    FP32 = formats.FP32.code
    TF32 = formats.TF32.code
    BF16 = formats.BF16.code
    FP16 = formats.FP16.code
    FP8E4M3 = formats.FP8E4M3.code
    FP8E5M2 = formats.FP8E5M2.code
    FP8E3M4 = formats.FP8E3M4.code
    INT8 = formats.INT8.code
    INT16 = formats.INT16.code
    INT32 = formats.INT32.code


_ALL = tuple(formats.FORMATS.values())


def element_size(m: Module, name: str, code, known: Iterable[formats.Format] = _ALL) -> Signal:
    """Return a signal with log2 of the bytes of an element whose format is `code`, one of the `known` ones."""
    size = Signal(2, name=name)
    with m.Switch(code):
        for fmt in known:
            with m.Case(FormatCode(fmt.code)):
                m.d.comb += size.eq((fmt.bits // 8).bit_length() - 1)
    return size
