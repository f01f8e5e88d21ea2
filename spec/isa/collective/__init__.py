"""Instruction of the collective engine: one rank's part of a group's operation.

The instructions of all ranks have the same fields, except addresses, pitch, rank, seed, stream and those that the kind
does not use. They determine how a vector is reduced:

1. The vector is divided into granules of `GRANULE` elements. Channel 0 processes the first half of the granules,
   rounded up, channel 1 the others.
2. A channel processes its part in rounds of `ranks` segments of `chunk` granules, in order. The last round may end
   early, in or before any segment.
3. Channel 0 sums segment s over the ranks s + 1, s + 2, ..., s (modulo ranks) in this order, channel 1 over the ranks
   s - 1, s - 2, ..., s.
4. In REDUCE_SCATTER, segment s of a round is from block s, and there are as many rounds as a block has chunks.
5. Rank s adds last, and rounds by its own seed and stream. Every rank stores this result.

A rank's src and dst must be disjoint, or the same block: src = dst for ALL_REDUCE and BROADCAST, dst = block `rank` of
src for REDUCE_SCATTER, src = block `rank` of dst for ALL_GATHER. Results of other overlaps are undefined.
"""

from neuroncore_rtl.spec.isa.collective.agreement import (
    SIGNATURE_BITS,
    SIGNATURE_FIELDS,
    SIGNATURE_OFFSETS,
    SIGNATURE_USES,
    disagreement,
    signature,
    signature_fields,
)
from neuroncore_rtl.spec.isa.collective.instruction import Collective, Group
from neuroncore_rtl.spec.isa.collective.kind import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    CHUNK_GRANULES,
    GRANULE,
    MAX_RANKS,
    OTHER_SIDE,
    RANK_BITS,
    REDUCTION_KINDS,
    ROOTED,
    CollectiveKind,
    CollectiveType,
    ReduceOp,
    best_chunk,
    element_bytes,
    uses_dst,
    uses_src,
)
from neuroncore_rtl.spec.isa.collective.layout import COLLECTIVE, COLLECTIVE_BITS, COLLECTIVE_FIELDS, COLLECTIVE_WIDTHS
from neuroncore_rtl.spec.isa.collective.rules import COLLECTIVE_ALIGNMENT, COLLECTIVE_RULES, collective_violation

__all__ = [
    "BLOCKS_OF_DST", "BLOCKS_OF_SRC", "CHUNK_GRANULES", "COLLECTIVE", "COLLECTIVE_ALIGNMENT", "COLLECTIVE_BITS",
    "COLLECTIVE_FIELDS", "COLLECTIVE_RULES", "COLLECTIVE_WIDTHS", "GRANULE", "MAX_RANKS", "OTHER_SIDE", "RANK_BITS",
    "REDUCTION_KINDS", "ROOTED", "SIGNATURE_BITS", "SIGNATURE_FIELDS", "SIGNATURE_OFFSETS", "SIGNATURE_USES",
    "Collective", "CollectiveKind", "CollectiveType", "Group", "ReduceOp", "best_chunk", "collective_violation",
    "disagreement", "element_bytes", "signature", "signature_fields", "uses_dst", "uses_src",
]  # fmt: skip
