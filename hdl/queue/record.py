"""Hardware layout of a record, from `spec.isa`."""

from amaranth.lib import data

from neuroncore_rtl.spec.isa import HEADER_FIELDS, RECORD_BYTES

__all__ = ["Header", "RecordBeat"]

Header = data.StructLayout(dict(HEADER_FIELDS))
"""Header of a record: its engine, its waits and its updates."""


class RecordBeat(data.StructLayout):
    """Beat of a record, as received from HBM, lowest bytes first.

    data: bytes of the beat.
    place: index of the beat.
    last: last beat of the record.
    error: valid with `last`: HBM returned an error for a beat of this record, and its data are invalid.

    Arguments:
        size: bytes of a beat.
    """

    def __init__(self, size: int):
        super().__init__({"data": 8 * size, "place": range(RECORD_BYTES // size), "last": 1, "error": 1})
