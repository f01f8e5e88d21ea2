"""On-chip memories as byte arrays, and the accesses of instructions to them."""

from neuroncore_rtl.golden.memory.access import footprint, gather, scatter

__all__ = ["footprint", "gather", "scatter"]
