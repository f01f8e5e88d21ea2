"""Activation functions: names and codes, the widths of their datapath, and its tables."""

from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS, TRIGONOMETRIC, Function, function_named
from neuroncore_rtl.spec.functions.tables import Tables, load_tables

__all__ = ["FUNCTIONS", "TRIGONOMETRIC", "Function", "Tables", "function_named", "load_tables"]
