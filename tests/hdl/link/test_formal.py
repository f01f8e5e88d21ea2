"""Formal proofs of the link layer, with a hostile wire.

By induction, so for runs of any length, with windows of 3: :class:`Contents` shows that the receiver takes the flits
that the sender took, each once and in order, and that a buffer always has room; :class:`FifoModel` that a buffer with
room keeps what it takes in order, too. Bounded: :class:`Progress` in 27 cycles, of which the wire does what it likes in
6; :class:`EndToEnd`, all of it at once, in 8.
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
    """After 3 cycles, not every flit can have arrived: so the proof of progress looks at something."""
    assert not prove(Progress(WINDOW, trouble=6, after=3), 10).holds


def test_buffers_smaller_than_credits_are_found():
    assert not prove(EndToEnd(WINDOW, stages=1, receiver_window=1), 8).holds
