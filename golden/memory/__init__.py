"""The on-chip memories as arrays of bytes, and what an instruction's accesses read and write there."""

from neuroncore_rtl.golden.memory.access import footprint, gather, scatter

__all__ = ["footprint", "gather", "scatter"]
