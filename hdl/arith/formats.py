"""Format codes as a typed enumeration, and the element size of a format."""

from collections.abc import Iterable

from amaranth import Module, Signal

from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.spec.formats import FORMATS, Format

__all__ = ["FormatCode", "element_size"]

FormatCode = typed_enum("FormatCode", {name.upper(): fmt.code for name, fmt in FORMATS.items()}, 4)
"""Codes of `spec.formats`."""


_ALL = tuple(FORMATS.values())


def element_size(m: Module, name: str, code, known: Iterable[Format] = _ALL) -> Signal:
    """Return a signal with log2 of the element size in bytes of the format `code`, one of the `known`."""
    size = Signal(2, name=name)
    with m.Switch(code):
        for fmt in known:
            with m.Case(FormatCode(fmt.code)):
                m.d.comb += size.eq((fmt.bits // 8).bit_length() - 1)
    return size
