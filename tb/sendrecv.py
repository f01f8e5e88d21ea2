"""TEST=sendrecv: every core to the next of its group, over the links; every byte of HBM is golden's."""

from spec.isa.collective import CollectiveKind
from tb.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench(
    "sendrecv", CollectiveKind.SEND, "every core to the next of its group, over the links, against golden"
)
