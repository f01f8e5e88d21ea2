"""Formal proofs of the link layer with an adversarial wire.

Proofs by induction hold for runs of any length, with windows of 3: `Contents` shows that the receiver delivers
the flits that the sender accepted, each once and in order, and that a buffer never overflows; `FifoModel` shows
that a buffer without overflow keeps order. Bounded proofs: `Progress` covers 27 cycles, in 6 of which the wire
is adversarial; `EndToEnd` covers the complete link for 8 cycles.
"""

import pytest

from neuroncore_rtl.tb.proofs.link import WINDOW, Contents, EndToEnd, FifoModel, Progress
from neuroncore_rtl.tb.proofs.solver import Method, prove

PROOFS = {
    "order and credits": (lambda: Contents(WINDOW), (1, Method.INDUCTION), True),
    "buffer": (lambda: FifoModel(WINDOW), (2, Method.INDUCTION), True),
    "progress": (lambda: Progress(WINDOW, trouble=6, after=20), (27,), True),
    "end to end": (lambda: EndToEnd(WINDOW, stages=1), (8,), True),
    # Not every flit can arrive within 3 cycles, so the proof of progress is not vacuous.
    "progress takes time": (lambda: Progress(WINDOW, trouble=6, after=3), (10,), False),
    "buffers smaller than credits": (lambda: EndToEnd(WINDOW, stages=1, receiver_window=1), (8,), False),
}
"""The unit, cycles and method of each proof, and whether the property holds."""


@pytest.mark.parametrize(("make", "extent", "holds"), PROOFS.values(), ids=PROOFS)
def test_proof(make, extent, holds):
    assert prove(make(), *extent).holds == holds
