"""AXI4 subset of this machine: incrementing bursts of whole beats.

Names and rules are those of the AMBA AXI4 specification (ARM IHI 0022). Signals that are constant in this machine
appear only at its ports (`constants`).
"""

from collections.abc import Iterator

from amaranth import Module, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Member, Out

from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = [
    "CONSTANT_BITS", "MAX_BEATS", "PAGE_BYTES", "RESPONSE_OKAY", "RESPONSE_SLVERR", "Axi", "AxiPort",
    "connect_channels", "constants", "write_responses",
]  # fmt: skip

PAGE_BYTES = 4096
"""Boundary that no burst crosses, in bytes."""

MAX_BEATS = 64
"""Longest burst that this machine issues; AXI4 allows 256."""

RESPONSE_OKAY = 0
"""Value of RRESP and BRESP for success; DECERR is 3."""
RESPONSE_SLVERR = 2
"""Value of RRESP and BRESP for an error of the subordinate."""

CONSTANT_BITS = {"size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4, "region": 4}
"""Signals of AW and AR that are constant in this machine, with their widths."""


def constants(size: int) -> dict[str, int]:
    """Return the values of the constant signals, for beats of `size` bytes.

    Whole beats (size), incrementing (burst INCR), no exclusive access (lock), unprivileged secure data (prot), no
    quality of service, one region. Normal memory, not cacheable or bufferable (cache 0b0010): a write response means
    that the write is visible everywhere, on which the machine relies.
    """
    return dict.fromkeys(CONSTANT_BITS, 0) | {"size": (size - 1).bit_length(), "burst": 0b01, "cache": 0b0010}


def write_responses(id_bits: int, *, always_ready: bool = False) -> stream.Signature:
    """Return the signature of AXI channel B (write responses); for the parameters see `AxiPort`."""
    return stream.Signature(data.StructLayout({"id": id_bits, "resp": 2}), always_ready=always_ready)


class Axi(wiring.Signature):
    """AXI channels: streams with payload fields named as in the specification."""

    def flatten(self, obj) -> Iterator[tuple[tuple[str], Member, Value]]:
        """Yield the signals under the names of the AXI specification, such as `awvalid`, for boards and models."""
        for channel, member in self.members.items():
            for (name,), port, value in member.signature.flatten(getattr(obj, channel)):
                if name == "payload":
                    for field, shape in port.shape:
                        yield (f"{channel}{field}",), Member(port.flow, shape.shape), value[field]
                else:
                    yield (f"{channel}{name}",), port, value


class AxiPort(Axi):
    """AXI port, seen from the manager: the channels aw, w, b, ar, r.

    Addresses are multiples of `size`; `len` is the number of beats minus one. Responses with the same ID arrive in
    order, those with different IDs in any order.

    Arguments:
        size: bytes per beat.
        id_bits: width of the IDs; at least 1.
    """

    def __init__(self, size: int, id_bits: int):
        self.size = size
        self.id_bits = id_bits
        addresses = stream.Signature(data.StructLayout({"id": id_bits, "addr": HBM_ADDRESS_BITS, "len": 8}))
        super().__init__(
            {
                "aw": Out(addresses),
                "w": Out(stream.Signature(data.StructLayout({"data": 8 * size, "strb": size, "last": 1}))),
                "b": In(write_responses(id_bits)),
                "ar": Out(addresses),
                "r": In(stream.Signature(data.StructLayout({"id": id_bits, "data": 8 * size, "resp": 2, "last": 1}))),
            }
        )


def connect_channels(m: Module, manager, port, *names: str) -> None:
    """Connect the named AXI channels of a manager inside a module to a port of that module."""
    for name in names:
        wiring.connect(m, getattr(manager, name), wiring.flipped(getattr(port, name)))
