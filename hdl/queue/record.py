"""A record as a hardware structure, over the layout of `spec.isa`."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa import HEADER_BITS, HEADER_FIELDS, RECORD_BITS

__all__ = ["Header", "Record"]

Header = data.StructLayout(dict(HEADER_FIELDS))
"""Whose record it is, what it waits for, and what it updates."""


class Record(data.Struct):
    """A record as it came from HBM. error: HBM answered with one, and the rest means nothing."""

    header: Header
    body: unsigned(RECORD_BITS - HEADER_BITS)
    error: unsigned(1)
