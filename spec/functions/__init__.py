"""The activation functions: what they are called, the widths of their datapath, and its tables."""

from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS, TRIGONOMETRIC, Function, function_named
from neuroncore_rtl.spec.functions.tables import Tables, load_tables

__all__ = ["FUNCTIONS", "TRIGONOMETRIC", "Function", "Tables", "function_named", "load_tables"]
