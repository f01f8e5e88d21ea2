"""TEST=alltoall: all-to-all over the links; every byte of HBM is golden's."""

from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.benches.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench("alltoall", CollectiveKind.ALL_TO_ALL, "all-to-all over the links, against golden")
