"""TEST=barrier: barrier over the links; nothing but time passes."""

from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.benches.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench("barrier", CollectiveKind.BARRIER, "barrier over the links, against golden")
