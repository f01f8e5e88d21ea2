"""Steps with the columns that they read and write."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.elementwise.job import INTERVAL_BITS
from neuroncore_rtl.hdl.elementwise.place import Place
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep

__all__ = ["ElementwiseIssue", "Write"]


class Write(data.Struct):
    """Destination of a step's result.

    Fields:
        place: location of the column to write: first partition and address.
        partitions: number of partitions.
        last: this is the last write of its instruction.
    """

    place: Place
    partitions: unsigned(11)
    last: unsigned(1)


class ElementwiseIssue(data.Struct):
    """Step for the fetch, with the location of the columns to read and write.

    Fields:
        reads_a, reads_b: the step reads the column `a`, the column `b`.
        drain: the step stalls until all earlier results are written.
        interval: smallest number of cycles from this step to the next.
    """

    step: ElementwiseStep
    reads_a: unsigned(1)
    reads_b: unsigned(1)
    a: Place
    b: Place
    write: Write
    drain: unsigned(1)
    interval: unsigned(INTERVAL_BITS)
