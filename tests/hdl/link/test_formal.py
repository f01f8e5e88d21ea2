"""Formal proofs of the link layer with an adversarial wire.

Proofs by induction hold for runs of any length, with windows of 3: `Contents` shows that the receiver delivers
the flits that the sender accepted, each once and in order, and that a buffer never overflows; `FifoModel` shows
that a buffer without overflow keeps order. Bounded proofs: `Progress` covers 27 cycles, in 6 of which the wire
is adversarial; `EndToEnd` covers the complete link for 8 cycles.
"""

from neuroncore_rtl.tb.proofs.link import WINDOW, Contents, EndToEnd, FifoModel, Progress
from neuroncore_rtl.tb.proofs.solver import Method, prove


def test_order_and_credits():
    assert prove(Contents(WINDOW), 1, Method.INDUCTION).holds


def test_buffer():
    assert prove(FifoModel(WINDOW), 2, Method.INDUCTION).holds


def test_progress():
    assert prove(Progress(WINDOW, trouble=6, after=20), 27).holds


def test_end_to_end():
    assert prove(EndToEnd(WINDOW, stages=1), 8).holds


def test_progress_takes_time():
    # Not every flit can arrive within 3 cycles, so the proof of progress is not vacuous.
    assert not prove(Progress(WINDOW, trouble=6, after=3), 10).holds


def test_buffers_smaller_than_credits_are_found():
    assert not prove(EndToEnd(WINDOW, stages=1, receiver_window=1), 8).holds
