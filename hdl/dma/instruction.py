"""A copy as a hardware structure: a layout over `spec.isa.DMA_FIELDS`, with the types of its fields."""

from amaranth import signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.memory.port import Storage
from neuroncore_rtl.spec import isa

__all__ = ["DmaInstruction"]


_TYPES = {"storage": Storage, "dtype": FormatCode}


def _type(name: str, width: int):
    """Return the shape of a field; those of a tensor are typed by what follows the tensor's name."""
    role = name.rsplit("_", 1)[-1]
    if role.startswith("step"):
        return signed(width)
    return _TYPES.get(role) or unsigned(width)


DmaInstruction = data.StructLayout({name: _type(name, width) for name, width in isa.DMA_FIELDS})
"""One instruction; the widths and their order are those of `spec.isa.DMA_FIELDS`, steps are signed."""
