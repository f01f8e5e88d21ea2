"""Scalar engine: activation functions on arrays, and an interpreter of its instruction."""

from neuroncore_rtl.golden.scalar.engine import ScalarEngine, activation
from neuroncore_rtl.golden.scalar.functions import activate
from neuroncore_rtl.golden.scalar.softmax import softmax

__all__ = ["ScalarEngine", "activate", "activation", "softmax"]
