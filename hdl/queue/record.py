"""A record as a hardware structure, over the layout of `spec.isa`."""

from amaranth.lib import data

from neuroncore_rtl.spec.isa import HEADER_FIELDS, RECORD_BYTES

__all__ = ["Header", "RecordBeat"]

Header = data.StructLayout(dict(HEADER_FIELDS))
"""Whose record it is, what it waits for, and what it updates."""


class RecordBeat(data.StructLayout):
    """A part of a record, as it came from HBM, the lowest bytes first.

    data, place: bytes, and which of the record's beats they are. last: with it the record is whole. error: with the
    last one, HBM answered with an error to any of them, and the rest means nothing.

    Arguments:
        size: bytes of a beat.
    """

    def __init__(self, size: int):
        super().__init__({"data": 8 * size, "place": range(RECORD_BYTES // size), "last": 1, "error": 1})
