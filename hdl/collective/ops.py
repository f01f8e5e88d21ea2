"""Operations of the units of a collective channel, one segment each.

    instruction -> Schedule -+-> LoadOp ----> Loader ---- beats --> ReceivePath
                             +-> ReceiveOp -> ReceivePath <- net
                             |                   |  |
                             |           StoreOp v  +-- forwarded beats --> Sender
                             |                 Storer
                             +-> LoadOp ----> Loader ---- beats --> Sender
                             +-> SendOp ----> Sender -> net

A segment is transferred in beats of `link_bytes`. Raw beats hold elements as in memory. Wide beats hold FP32 instead of
BF16, half as many; for FP32 and INT32 both forms are the same. Lanes beyond the segment are ignored. No operation is
marked as the last of its instruction: an instruction is done when no operation is outstanding.
"""

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_WIDTHS, CollectiveType
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["ELEMENTS_BITS", "LoadOp", "ReceiveOp", "SendOp", "StoreOp", "beats_of"]

ELEMENTS_BITS = COLLECTIVE_WIDTHS["count"]
"""Width of an operation's number of elements, which is from 1 to a whole block."""


class LoadOp(data.Struct):
    """Adjacent elements to read from HBM, as beats.

    Fields:
        zero: the beats are all zeros, and HBM is not read.
        wide: BF16 elements are extended to FP32 in the beats. Always set for a BF16 reduction, even if its partial
            results are sent as BF16.
        dtype: a `CollectiveType`.
        address: HBM address of the first element, a multiple of 64.
    """

    zero: unsigned(1)
    wide: unsigned(1)
    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    elements: unsigned(ELEMENTS_BITS)
    address: unsigned(HBM_ADDRESS_BITS)


class ReceiveOp(data.Struct):
    """A segment from the network, from HBM, or the reduction of both.

    The Loader's beats for a BF16 reduction are always wide (FP32); the beats of the other core may be wide or not. The
    beats of a copy are never wide.

    Fields:
        net, load: sources of the operands: beats of another core (net), and of the Loader. A reduction has both, a copy
            one.
        store, forward: destinations of the results: HBM, and the Sender. One or both are set, but neither for a token
            and a barrier's last operation.
        zero: the load beats are zeros from the Loader, for a barrier.
        final: the last reduction of the segment.
        op, dtype: a `ReduceOp` and a `CollectiveType`.
        wide_in: the beats of the other core are wide: FP32 although the format is BF16.
        wide_out: forwarded beats are wide: FP32 although the format is BF16. A BF16 reduction rounds if and only if
            this is 0.
        stochastic: round stochastically, else to nearest even; only if `final`.
        store_address: HBM address of the results, a multiple of 64.
        first_element: index of the segment's first element, a multiple of GRANULE, for stochastic rounding.
        new_peer: first receive operation from the core `peer`.
        peer: core that sends the segment.
    """

    net: unsigned(1)
    load: unsigned(1)
    zero: unsigned(1)
    store: unsigned(1)
    forward: unsigned(1)
    final: unsigned(1)
    op: unsigned(COLLECTIVE_WIDTHS["op"])
    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    wide_in: unsigned(1)
    wide_out: unsigned(1)
    stochastic: unsigned(1)
    elements: unsigned(ELEMENTS_BITS)
    store_address: unsigned(HBM_ADDRESS_BITS)
    first_element: unsigned(32)
    new_peer: unsigned(1)
    peer: unsigned(CORE_BITS)


class SendOp(data.Struct):
    """A segment to send to the next core.

    Fields:
        load: the segment's beats are from the Loader, else from the ReceivePath.
        wide: the beats are FP32 although the elements are BF16.
        dtype: a `CollectiveType`.
        new_peer: first send operation to the core `peer`.
        peer: core that receives the segment.
    """

    load: unsigned(1)
    wide: unsigned(1)
    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    elements: unsigned(ELEMENTS_BITS)
    new_peer: unsigned(1)
    peer: unsigned(CORE_BITS)


class StoreOp(data.Struct):
    """Adjacent elements to write to HBM.

    Their beats have the format `dtype` without extension to FP32; `address` is a multiple of 64.
    """

    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    elements: unsigned(ELEMENTS_BITS)
    address: unsigned(HBM_ADDRESS_BITS)


def beats_of(m: Module, name: str, elements: Value, dtype: Value, wide: Value, link_bytes: int) -> Signal:
    """Return the number of beats of a segment.

    Arguments:
        m: module that gets the logic.
        name: name of the returned signal.
        elements: number of elements of the segment.
        dtype: a `CollectiveType`.
        wide: BF16 elements are sent as FP32; ignored for other formats.
        link_bytes: bytes per beat.
    """
    four = (link_bytes // 4).bit_length() - 1  # log2 of the four-byte elements per beat
    beats = Signal(ELEMENTS_BITS, name=name)
    raw = (dtype == CollectiveType.BF16) & ~wide
    m.d.comb += beats.eq(
        Mux(
            raw,
            (elements + (2 << four) - 1) >> (four + 1),
            (elements + (1 << four) - 1) >> four,
        )
    )
    return beats
