"""TEST=reducescatter: reduce-scatter over the links; every byte of HBM is golden's."""

from spec.isa.collective import CollectiveKind
from tb.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench(
    "reducescatter", CollectiveKind.REDUCE_SCATTER, "reduce-scatter over the links, against golden"
)
