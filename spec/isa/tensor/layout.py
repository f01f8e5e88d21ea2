"""Bit layout of a tensor instruction."""

from neuroncore_rtl.spec.isa.fields import Layout, width_of

__all__ = ["LOAD_STATIONARY", "MULTIPLY_MOVING", "TENSOR_BITS", "TENSOR_FIELDS"]

LOAD_STATIONARY = 1
MULTIPLY_MOVING = 2

TENSOR_FIELDS: Layout = (
    ("opcode", 2),
    ("dtype", 4),
    ("half", 1),
    ("transpose", 1),
    ("accumulate", 1),
    ("k", 11),
    ("m", 11),
    ("n", 10),
    ("address", 18),
    ("stride", 16),
    ("psum", 12),
    ("row", 10),
    ("column", 10),
)
"""Fields, from the least significant bit up."""

TENSOR_BITS = width_of(TENSOR_FIELDS)
