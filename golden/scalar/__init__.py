"""The scalar engine as equations on arrays, and as an interpreter of its instruction."""

from golden.scalar.engine import ScalarEngine, activation
from golden.scalar.functions import activate
from golden.scalar.softmax import softmax

__all__ = ["ScalarEngine", "activate", "activation", "softmax"]
