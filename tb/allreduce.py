"""TEST=allreduce: all-reduce over the links; every byte of HBM is golden's."""

from spec.isa.collective import CollectiveKind
from tb.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench("allreduce", CollectiveKind.ALL_REDUCE, "all-reduce over the links, against golden")
