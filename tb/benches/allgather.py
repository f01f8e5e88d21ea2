"""TEST=allgather: all-gather over the links; every byte of HBM is golden's."""

from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.benches.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench("allgather", CollectiveKind.ALL_GATHER, "all-gather over the links, against golden")
