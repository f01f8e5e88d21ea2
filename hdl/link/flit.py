"""Link formats: flits, transferred as streams, and frames, one on the wire in every cycle.

A frame carries at most one flit, and always the receive state of the end that sends it. So losing a frame without a
flit is harmless, and the sequence number in the next frame that arrives reveals the loss of a flit.
"""

from amaranth import unsigned
from amaranth.lib import data, stream

from neuroncore_rtl.spec.link import CRC_BITS, FLIT_HEADER, SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["RETRY_BITS", "body_layout", "flit_layout", "flit_stream", "frame_layout"]

RETRY_BITS = 4
"""Bits of the replay counts `retry` and `answer`, which differ by one at most."""


def flit_layout(link_bytes: int) -> data.StructLayout:
    """Return the layout of a flit: `header`, with the fields of `spec.link.FLIT_HEADER`, and `data`."""
    header = data.StructLayout({name: unsigned(width) for name, width in FLIT_HEADER})
    return data.StructLayout({"header": header, "data": unsigned(8 * link_bytes)})


def flit_stream(link_bytes: int) -> stream.Signature:
    """Return the signature of a stream of flits; `Out` is the source."""
    return stream.Signature(flit_layout(link_bytes))


def body_layout(link_bytes: int) -> data.StructLayout:
    """Return the layout of a frame without its CRC.

    Fields:
        flit: undefined unless `valid`.
        vc: virtual channel of the flit.
        valid: the frame carries a flit.
        sequence: sequence number of the flit; in a frame without a flit, of the next flit to send.
        answer: number of replays that this end has made because the other end requested them.
        expected: sequence number of the first flit that this end has not received.
        retry: number of replays that this end has requested.
        credits_returned: flits read from each input buffer of this end, modulo 2 ** SEQUENCE_BITS.
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
    """Return the layout of a frame: `body`, and `crc`, the crc32 of zlib over its bits.

    The bits form bytes from the least significant up; zeros complete the last byte.
    """
    return data.StructLayout({"body": body_layout(link_bytes), "crc": unsigned(CRC_BITS)})
