"""DMA instruction layout: `spec.isa.DMA_FIELDS` with typed fields."""

from amaranth import signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.memory.port import Storage
from neuroncore_rtl.spec import isa

__all__ = ["DmaInstruction"]


_TYPES = {"storage": Storage, "dtype": FormatCode}


def _type(name: str, width: int):
    role = name.rsplit("_", 1)[-1]
    if role.startswith("step"):
        return signed(width)
    return _TYPES.get(role) or unsigned(width)


DmaInstruction = data.StructLayout({name: _type(name, width) for name, width in isa.DMA_FIELDS})
"""One instruction; order and widths as in `spec.isa.DMA_FIELDS`, steps signed."""
