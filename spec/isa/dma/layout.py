"""Bit layout of a copy."""

from neuroncore_rtl.spec.isa.fields import Layout, width_of

__all__ = [
    "DMA_BITS", "DMA_COPY", "DMA_DIMENSIONS", "DMA_FIELDS", "DMA_SIGNED", "DMA_TENSOR_FIELDS", "DMA_WIDTHS",
    "HBM_ADDRESS_BITS", "NO_AXIS", "OUTERMOST",
]  # fmt: skip

DMA_COPY = 48
"""Opcode, distinct from those of the other engines."""

DMA_DIMENSIONS = 5
"""Dimensions of a copy: the partition and four free ones, as published."""

HBM_ADDRESS_BITS = 40
"""Width of a byte address in HBM."""

NO_AXIS = 7
"""Code for a tensor without axis: it is in one partition, or in HBM."""

DMA_TENSOR_FIELDS: Layout = (
    ("storage", 2),
    ("dtype", 4),
    ("address", HBM_ADDRESS_BITS),
    ("partition", 11),
    ("axis", 3),
    *((f"step{dimension}", 32) for dimension in range(DMA_DIMENSIONS)),
)

DMA_FIELDS: Layout = (
    ("opcode", 6),
    ("gather", 1),
    ("scatter", 1),
    *((f"count{dimension}", 16) for dimension in range(DMA_DIMENSIONS)),
    *((f"src_{name}", width) for name, width in DMA_TENSOR_FIELDS),
    *((f"dst_{name}", width) for name, width in DMA_TENSOR_FIELDS),
    ("index_address", 18),
    ("index_partition", 11),
    ("index_limit", 32),
    ("index_skip", 1),
)
"""Fields, from the least significant bit up. Dimension 0 is the innermost; steps are in two's complement."""

DMA_WIDTHS = dict(DMA_FIELDS)

DMA_BITS = width_of(DMA_FIELDS)

DMA_SIGNED = frozenset(f"{tensor}_step{d}" for tensor in ("src", "dst") for d in range(DMA_DIMENSIONS))
"""Fields in two's complement."""

OUTERMOST = DMA_DIMENSIONS - 1
"""Dimension that steps by row numbers in a gather or scatter."""
