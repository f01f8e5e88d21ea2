"""Instruction of the DMA engines: copies a tensor of up to five dimensions between HBM, SBUF and PSUM.

On chip, one dimension, the `axis`, may step from partition to partition; so a transposition is a copy between tensors
with different axes. Elements are copied in row-major order. If the formats differ, an element is cast as by
TENSOR_COPY, to nearest even; if they are the same, its bits are copied.
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
