"""Bit layout of an instruction of the vector or the scalar engine."""

from neuroncore_rtl.spec.isa.access import ACCESS_FIELDS, DIMENSIONS
from neuroncore_rtl.spec.isa.fields import Layout, width_of

__all__ = ["ACCESSES", "ELEMENTWISE_BITS", "ELEMENTWISE_FIELDS", "ELEMENTWISE_SIGNED"]

ACCESSES = ("dst", "a", "b")

ELEMENTWISE_FIELDS: Layout = (
    ("opcode", 6),
    ("overlap", 1),
    ("op0", 5),
    ("op1", 5),
    ("reverse0", 1),
    ("reverse1", 1),
    ("axes", 3),
    ("negate", 1),
    ("keep", 1),
    ("function", 6),
    ("sum_continue", 1),
    ("sum_store", 1),
    ("stochastic", 1),
    ("partitions", 11),
    *((f"count{dimension}", 16) for dimension in range(DIMENSIONS)),
    *((f"{access}_{name}", width) for access in ACCESSES for name, width in ACCESS_FIELDS),
    ("pointer0", 1),
    ("scalar0", 32),
    ("pointer1", 1),
    ("scalar1", 32),
    ("alpha", 32),
    ("seed", 32),
    ("stream", 32),
    ("index", 64),
    ("index_partition", 32),
    *((f"index_step{dimension}", 32) for dimension in range(DIMENSIONS)),
)
"""Fields, from the least significant bit up. Dimension 0 is the innermost; steps are in two's complement. pointer0:
scalar0 holds a `Pointer` (`POINTER_FIELDS`) instead of a word; pointer1 is the same for scalar1.
"""

ELEMENTWISE_BITS = width_of(ELEMENTWISE_FIELDS)

ELEMENTWISE_SIGNED = frozenset(
    {"index", "index_partition"}
    | {f"index_step{d}" for d in range(DIMENSIONS)}
    | {f"{access}_step{d}" for access in ACCESSES for d in range(DIMENSIONS)}
)
"""Fields in two's complement."""
