"""What the vector and the scalar engine have in common: words, element numbers, operands."""

from golden.elementwise.index import element_index, element_words
from golden.elementwise.operands import Operands
from golden.elementwise.words import load, store

__all__ = ["Operands", "element_index", "element_words", "load", "store"]
