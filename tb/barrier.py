"""TEST=barrier: barrier over the links; nothing but time passes."""

from spec.isa.collective import CollectiveKind
from tb.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench("barrier", CollectiveKind.BARRIER, "barrier over the links, against golden")
