"""What the units of a channel of the collective engine are told to do: operations, each about one segment.

    instruction -> Schedule -+-> LoadOp ----> Loader ---- beats ---+
                             |                                     |
                             +-> ReceiveOp -> ReceivePath <- net   +-> ReceivePath, Sender
                             |                   |  |
                             |           StoreOp v  +-- forwarded beats --> Sender
                             |                 Storer
                             +-> SendOp -----> Sender -> net

A segment goes as beats of `link_bytes`, in one of two forms. Raw: the elements as they are in memory, so many as fit.
Wide: FP32 in place of BF16, half as many. Of FP32 and INT32 both are the same. The last beat's lanes beyond the segment
are ignored. No operation is marked as the last one of its instruction: the channel counts what is owed.
"""

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_WIDTHS, CollectiveType
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = [
    "ELEMENTS_BITS", "LoadOp", "ReceiveOp", "SendOp", "StoreOp", "beats_of", "load_beat_layout",
]  # fmt: skip

ELEMENTS_BITS = COLLECTIVE_WIDTHS["count"]
"""Of the number of elements of an operation: a whole block at most. No operation has none."""


class LoadOp(data.Struct):
    """Adjacent elements that are read from HBM, as beats.

    to_send: the beats are for the Sender, else for the ReceivePath. zero: nothing is read, the beats are 0. wide: the
    beats are FP32, although the elements are BF16. dtype: a `CollectiveType`. address: of the first element, a multiple
    of 64.

    Loads for a reduction of BF16 are always wide, with partial results that travel narrow, too.
    """

    to_send: unsigned(1)
    zero: unsigned(1)
    wide: unsigned(1)
    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    elements: unsigned(ELEMENTS_BITS)
    address: unsigned(HBM_ADDRESS_BITS)


class ReceiveOp(data.Struct):
    """A segment that comes from the network, from HBM, or as the reduction of one from each.

    net, load: where it comes from; both for a reduction, one for a copy. store, forward: where it goes, one or both; a
    token, and a barrier's last one, goes nowhere.
    zero: the load beats are 0, made by the Loader, of a barrier. final: the last reduction of the segment. op: a
    `ReduceOp`. dtype: a `CollectiveType`. wide_in: the net beats are FP32, although the elements are BF16. wide_out: so
    are the forwarded beats. stochastic: round so, else to nearest even; only where final. A reduction of BF16 is
    rounded iff not wide_out. elements: of the segment. store_address: a multiple of 64. first_element: number of the
    first element, a multiple of GRANULE, for stochastic rounding. new_peer: the first one from this core. peer: the
    core that it comes from.

    Load beats of a reduction of BF16 are wide, with net beats of either form; those of a copy are raw, as are net beats
    of a copy.
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
    """A segment that goes to the next core.

    load: its beats come from the Loader, else from the ReceivePath. wide: they are FP32, although the elements are
    BF16. dtype: a `CollectiveType`. elements: of the segment. new_peer: the first one to this core. peer: the core that
    it goes to.
    """

    load: unsigned(1)
    wide: unsigned(1)
    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    elements: unsigned(ELEMENTS_BITS)
    new_peer: unsigned(1)
    peer: unsigned(CORE_BITS)


class StoreOp(data.Struct):
    """Adjacent elements that are written to HBM, from raw beats. dtype: a `CollectiveType`. address: of the first
    element, a multiple of 64."""

    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    elements: unsigned(ELEMENTS_BITS)
    address: unsigned(HBM_ADDRESS_BITS)


def load_beat_layout(link_bytes: int) -> data.StructLayout:
    """Return the layout of a beat from the Loader; to_send: it is for the Sender, else for the ReceivePath."""
    return data.StructLayout({"data": 8 * link_bytes, "to_send": 1})


def beats_of(m: Module, name: str, elements: Value, dtype: Value, wide: Value, link_bytes: int) -> Signal:
    """Return the beats that a segment goes as.

    Arguments:
        m: gets the logic, and a signal called `name`.
        wide: of BF16, whether its beats are FP32; means nothing of the other formats.
    """
    four = (link_bytes // 4).bit_length() - 1  # log2 of the elements of a beat, if they have four bytes
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
