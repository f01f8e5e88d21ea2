"""The instruction of the DMA engines: copy a tensor of up to five dimensions between HBM, SBUF and PSUM.

The two tensors share a shape; each steps through it in its own way. In HBM all steps are of elements along one line of
addresses. On chip one dimension, the `axis`, may step from partition to partition instead, whichever dimension that is;
so a transposition is a copy whose tensors have different axes. Elements are taken in row-major order. Where the formats
differ an element is cast as TENSOR_COPY of the vector engine casts it, to nearest even; where they are the same its
bits are copied.
"""

from neuroncore_rtl.spec.isa.dma.instruction import DmaCopy, DmaIndex, DmaTensor
from neuroncore_rtl.spec.isa.dma.layout import (
    DMA_BITS,
    DMA_COPY,
    DMA_DIMENSIONS,
    DMA_FIELDS,
    DMA_WIDTHS,
    HBM_ADDRESS_BITS,
    NO_AXIS,
)
from neuroncore_rtl.spec.isa.dma.rules import dma_violation

__all__ = [
    "DMA_BITS", "DMA_COPY", "DMA_DIMENSIONS", "DMA_FIELDS", "DMA_WIDTHS", "HBM_ADDRESS_BITS", "NO_AXIS", "DmaCopy",
    "DmaIndex", "DmaTensor", "dma_violation",
]  # fmt: skip
