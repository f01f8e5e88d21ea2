"""TEST=broadcast: broadcast from a group's first core over the links; every byte of HBM is golden's."""

from spec.isa.collective import CollectiveKind
from tb.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench(
    "broadcast", CollectiveKind.BROADCAST, "broadcast from a group's first core over the links, against golden"
)
