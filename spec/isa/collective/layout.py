"""Bit layout of a collective."""

from neuroncore_rtl.spec.isa.collective.kind import RANK_BITS
from neuroncore_rtl.spec.isa.dma import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.fields import Layout, width_of

__all__ = ["COLLECTIVE", "COLLECTIVE_BITS", "COLLECTIVE_FIELDS", "COLLECTIVE_SIGNED", "COLLECTIVE_WIDTHS"]

COLLECTIVE = 56
"""Opcode, distinct from those of the other engines."""

COLLECTIVE_FIELDS: Layout = (
    ("opcode", 6),
    ("kind", 3),
    ("op", 2),
    ("dtype", 2),
    ("narrow", 1),
    ("stochastic", 1),
    ("chunk", 5),
    ("ranks", RANK_BITS),
    ("base", 7),
    ("stride", 7),
    ("rank", RANK_BITS),
    ("root", RANK_BITS),
    ("count", 30),
    ("src_address", HBM_ADDRESS_BITS),
    ("dst_address", HBM_ADDRESS_BITS),
    ("pitch", 32),
    ("seed", 32),
    ("stream", 32),
)
"""Fields, from the least significant bit up. chunk and ranks: the number minus one. stride: in two's complement."""

COLLECTIVE_BITS = width_of(COLLECTIVE_FIELDS)

COLLECTIVE_WIDTHS = dict(COLLECTIVE_FIELDS)

COLLECTIVE_SIGNED = frozenset({"stride"})
"""Fields in two's complement."""
