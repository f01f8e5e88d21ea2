"""The instruction of the collective engine: one rank's part of an operation of a group of cores.

Ranks of a group are the cores base, base + stride, base + 2 * stride, ...; every one of them executes an instruction
that says the same of kind, op, dtype, narrow, stochastic, chunk, count, base, stride, ranks and BROADCAST's root, as
far as they mean something (`SIGNATURE_USES`), and its own addresses in its own HBM.

How a vector is reduced is a function of these fields alone. Its elements come in granules of `GRANULE`; channel 0 takes
the first half of the granules, rounded up, channel 1 the others. A channel goes through its part in rounds of `ranks`
segments of `chunk` granules; segment s of a round is the s-th, and the last round may end early, in or before any of
them. Channel 0 sums segment s in the order of ranks s + 1, s + 2, ..., s (modulo ranks), channel 1 in the order s - 1,
s - 2, ..., s; each sum is one addition to what has come so far. REDUCE_SCATTER has segment s of block s, with as many
rounds as a block has chunks. The rank that adds last, s, rounds by its own seed and stream, and what it stores is what
all store.

A rank's src and dst are apart, or the same block: src = dst of ALL_REDUCE and BROADCAST, dst = block `rank` of src of
REDUCE_SCATTER, src = block `rank` of dst of ALL_GATHER. What else overlaps is undefined.
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
