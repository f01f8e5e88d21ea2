"""The scalar engine as equations on arrays, and as an interpreter of its instruction."""

from neuroncore_rtl.golden.scalar.engine import ScalarEngine, activation
from neuroncore_rtl.golden.scalar.functions import activate
from neuroncore_rtl.golden.scalar.softmax import softmax

__all__ = ["ScalarEngine", "activate", "activation", "softmax"]
