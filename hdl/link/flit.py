"""What crosses a link: flits, which come and go as streams, and frames, one on the wire in every cycle.

A frame says whether it carries a flit, and always how far the end that sends it has received, so that the loss of any
frame but that of a flit harms nothing, and the loss of a flit shows in the next frame that comes.
"""

from amaranth import unsigned
from amaranth.lib import data, stream

from neuroncore_rtl.spec.link import CRC_BITS, FLIT_HEADER, SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["RETRY_BITS", "body_layout", "flit_layout", "flit_stream", "frame_layout"]

RETRY_BITS = 4
"""Bits of the number of a replay: requests and answers are never more than one apart."""


def flit_layout(link_bytes: int) -> data.StructLayout:
    """Return the layout of a flit: `header`, of the fields of `spec.link.FLIT_HEADER`, and `data`."""
    header = data.StructLayout({name: unsigned(width) for name, width in FLIT_HEADER})
    return data.StructLayout({"header": header, "data": unsigned(8 * link_bytes)})


def flit_stream(link_bytes: int) -> stream.Signature:
    """Return the signature of a stream of flits; `Out` is where they come from."""
    return stream.Signature(flit_layout(link_bytes))


def body_layout(link_bytes: int) -> data.StructLayout:
    """Return the layout of a frame without its check.

    Fields:
        flit, vc: the flit and its virtual channel; anything unless `valid`.
        valid: the frame carries a flit.
        sequence: number of the flit; without one, the number that the next will have.
        answer: replays made so far by this end, for the other.
        expected: number of the flit that this end waits for: it has all before it.
        retry: replays asked for so far by this end.
        credits_returned: by this end, one for each flit that has left its input buffer of a virtual channel, modulo
            2 ** SEQUENCE_BITS.
    """
    return data.StructLayout(
        {
            "flit": flit_layout(link_bytes),
            "vc": unsigned((VIRTUAL_CHANNELS - 1).bit_length()),
            "valid": unsigned(1),
            "sequence": unsigned(SEQUENCE_BITS),
            "answer": unsigned(RETRY_BITS),
            "expected": unsigned(SEQUENCE_BITS),
            "retry": unsigned(RETRY_BITS),
            "credits_returned": data.ArrayLayout(SEQUENCE_BITS, VIRTUAL_CHANNELS),
        }
    )


def frame_layout(link_bytes: int) -> data.StructLayout:
    """Return the layout of a frame: `body`, and `crc`, zlib's crc32 of its bits.

    The bits are taken as bytes from the least significant up, with zeros behind the last up to a whole byte.
    """
    return data.StructLayout({"body": body_layout(link_bytes), "crc": unsigned(CRC_BITS)})
