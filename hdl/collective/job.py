"""Collective job: a legal instruction, with products of its fields that the schedule needs."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import CHUNK_GRANULES, COLLECTIVE_WIDTHS, GRANULE, RANK_BITS, SIGNATURE_BITS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["SEGMENT_ELEMENTS", "CollectiveJobLayout"]

SEGMENT_ELEMENTS = CHUNK_GRANULES * GRANULE
"""Elements of the largest segment of a vector."""


class CollectiveJobLayout(data.Struct):
    """A legal instruction.

    Fields:
        kind, op, dtype: a `CollectiveKind`, `ReduceOp` and `CollectiveType`.
        last_rank: number of ranks minus one.
        count: elements per block; 1 for a barrier.
        chunk: elements per segment.
        core, first_core, last_core, root_core: this core, and the cores with rank 0, with the last rank, and with the
            rank `root`.
        unit: distance between the segments of successive ranks: in elements for ALL_REDUCE and BARRIER, else in bytes.
        own, top: `unit` times the rank of this core; `unit` times the last rank.
        signature: payload of READY flits, which other cores compare with their own signature.
    """

    kind: unsigned(COLLECTIVE_WIDTHS["kind"])
    op: unsigned(COLLECTIVE_WIDTHS["op"])
    dtype: unsigned(COLLECTIVE_WIDTHS["dtype"])
    narrow: unsigned(1)
    stochastic: unsigned(1)
    last_rank: unsigned(RANK_BITS)
    rank: unsigned(RANK_BITS)
    root: unsigned(RANK_BITS)
    count: unsigned(ELEMENTS_BITS)
    chunk: range(SEGMENT_ELEMENTS + 1)
    src: unsigned(HBM_ADDRESS_BITS)
    dst: unsigned(HBM_ADDRESS_BITS)
    stride: unsigned(CORE_BITS)
    core: unsigned(CORE_BITS)
    first_core: unsigned(CORE_BITS)
    last_core: unsigned(CORE_BITS)
    root_core: unsigned(CORE_BITS)
    unit: unsigned(HBM_ADDRESS_BITS)
    own: unsigned(HBM_ADDRESS_BITS)
    top: unsigned(HBM_ADDRESS_BITS)
    seed: unsigned(COLLECTIVE_WIDTHS["seed"])
    stream: unsigned(COLLECTIVE_WIDTHS["stream"])
    signature: unsigned(SIGNATURE_BITS)
