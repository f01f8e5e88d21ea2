"""Hardware structures and enumerations as Verilog macros for harnesses, and as dicts for reports.

Verilog harnesses use these macros, so that field positions and enumeration values are defined only in Python.
"""

import enum
from collections.abc import Mapping
from typing import Any

from amaranth.lib import data

__all__ = ["define_lines", "enum_defines", "layout_defines", "plain"]


def layout_defines(name: str, shape: data.StructLayout | type[data.Struct]) -> dict[str, Any]:
    """Return the macros of a structure: `name`, its bits, and `name`_FIELD, the bit range of each field.

    A range is the content of a part-select's brackets, as in ``error[`ERROR_CAUSE]``. Fields of a nested structure are
    `name`_FIELD_INNER.
    """
    layout = shape.as_shape() if isinstance(shape, type) else shape
    return {name: layout.size} | _places(name, layout, 0)


def _places(name: str, layout: data.StructLayout, base: int) -> dict[str, str]:
    found = {}
    for field_name, field in layout:
        macro, low = f"{name}_{field_name.upper()}", base + field.offset
        found[macro] = str(low) if field.width == 1 else f"{low + field.width - 1}:{low}"
        if isinstance(field.shape, data.StructLayout):
            found |= _places(macro, field.shape, low)
    return found


def enum_defines(name: str, members: type[enum.Enum]) -> dict[str, Any]:
    """Return the macros of an enumeration: `name`_MEMBER, the member's value."""
    return {f"{name}_{member.name}": int(member.value) for member in members}


def define_lines(macros: Mapping[str, object]) -> str:
    """Return the Verilog that defines macros."""
    return "".join(f"`define {name} {value}\n" for name, value in macros.items())


def plain(shape: Any, word: int) -> Any:
    """Return the fields of a word as nested dicts, lists and integers; `shape` is its layout."""
    layout = shape.as_shape() if isinstance(shape, type) else shape
    if not isinstance(layout, data.StructLayout | data.ArrayLayout):
        return word
    fields = {name: plain(field.shape, word >> field.offset & (1 << field.width) - 1) for name, field in iter(layout)}
    return list(fields.values()) if isinstance(layout, data.ArrayLayout) else fields
