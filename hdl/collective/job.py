"""A collective that was judged, with the few products that its schedules need."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import CHUNK_GRANULES, COLLECTIVE_WIDTHS, GRANULE, RANK_BITS, SIGNATURE_BITS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["SEGMENT_ELEMENTS", "CollectiveJobLayout"]

SEGMENT_ELEMENTS = CHUNK_GRANULES * GRANULE
"""Elements of a segment at most, where the vector is cut into segments."""


class CollectiveJobLayout(data.Struct):
    """One legal instruction.

    kind: a `CollectiveKind`. op, dtype: a `ReduceOp`, a `CollectiveType`. last_rank: ranks less one. count: elements of
    a block; 1 of a barrier. chunk: elements of a segment. src, dst: addresses. core, first_core, last_core, root_core:
    of this rank, of rank 0, of the last rank, of the rank `root`. unit: what lies from the place of a rank's segment to
    that of the next rank's: elements of ALL_REDUCE and BARRIER, else bytes. own, top: `unit` times the rank and times
    the last rank. signature: what is announced.
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
