"""Passes over a graph that leave its results unchanged."""

from neuroncore_rtl.frontends.xla.graph.operations import Graph
from neuroncore_rtl.frontends.xla.graph.verify import verify
from neuroncore_rtl.frontends.xla.simplify.constants import fold
from neuroncore_rtl.frontends.xla.simplify.duplicates import merge_equal, remove_unused
from neuroncore_rtl.frontends.xla.simplify.patterns import recognise

__all__ = ["simplified"]


def simplified(block: Graph) -> Graph:
    """Return a graph with the same results and fewer operations."""
    verify(block)
    fold(block)
    block = merge_equal(recognise(block))
    remove_unused(block)
    verify(block)
    return block
