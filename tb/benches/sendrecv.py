"""TEST=sendrecv: every core to the next of its group, over the links; every byte of HBM is golden's."""

from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.benches.collective import collective_bench

__all__ = ["BENCH"]

BENCH = collective_bench(
    "sendrecv", CollectiveKind.SEND, "every core to the next of its group, over the links, against golden"
)
