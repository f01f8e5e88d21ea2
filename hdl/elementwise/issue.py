"""A step on its way to the memories: with the columns that it reads, and the one that it writes."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.elementwise.job import INTERVAL_BITS
from neuroncore_rtl.hdl.elementwise.place import Place
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep

__all__ = ["ElementwiseIssue", "Write"]


class Write(data.Struct):
    """Where a step's result goes: to so many partitions from a place on. last: the instruction's last."""

    place: Place
    partitions: unsigned(11)
    last: unsigned(1)


class ElementwiseIssue(data.Struct):
    """reads_a, reads_b: it has a column a, a column b. drain: it must wait until everything before it is written.
    interval: least cycles until the next step."""

    step: ElementwiseStep
    reads_a: unsigned(1)
    reads_b: unsigned(1)
    a: Place
    b: Place
    write: Write
    drain: unsigned(1)
    interval: unsigned(INTERVAL_BITS)
