"""AXI4, as much of it as this machine uses: incrementing bursts of whole beats.

Names and rules are those of the AMBA AXI4 specification (ARM IHI 0022). Signals that this machine never varies are not
carried: size is the width of the port, burst INCR, and lock, cache, prot, qos and region are 0. A wrapper adds them.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["MAX_BEATS", "PAGE_BYTES", "RESPONSE_OKAY", "AxiPort"]

PAGE_BYTES = 4096
"""No burst crosses a multiple of it."""

MAX_BEATS = 64
"""Longest burst that this machine issues; AXI4 allows 256."""

RESPONSE_OKAY = 0
"""Of RRESP and BRESP; SLVERR is 2, DECERR 3."""


class AxiPort(wiring.Signature):
    """Seen from the manager, which reads and writes.

    Arguments:
        size: bytes of a beat.
        id_bits: width of the IDs; at least 1.

    Members: the channels aw, w, b, ar, r by the specification's names. Addresses are multiples of `size`; len is beats
    less one. Responses of one ID come in order, those of different IDs in any.
    """

    def __init__(self, size: int, id_bits: int):
        self.size = size
        self.id_bits = id_bits
        members = {}
        for channel in ("aw", "ar"):
            members |= {
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
                f"{channel}id": Out(id_bits),
                f"{channel}addr": Out(HBM_ADDRESS_BITS),
                f"{channel}len": Out(8),
            }
        members |= {
            "wvalid": Out(1),
            "wready": In(1),
            "wdata": Out(8 * size),
            "wstrb": Out(size),
            "wlast": Out(1),
            "bvalid": In(1),
            "bready": Out(1),
            "bid": In(id_bits),
            "bresp": In(2),
            "rvalid": In(1),
            "rready": Out(1),
            "rid": In(id_bits),
            "rdata": In(8 * size),
            "rresp": In(2),
            "rlast": In(1),
        }
        super().__init__(members)
