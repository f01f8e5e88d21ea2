"""Parts that the vector and the scalar engine share: words, element indices, operands."""

from neuroncore_rtl.golden.arith.words import load_words, store_words
from neuroncore_rtl.golden.elementwise.index import element_index, element_words
from neuroncore_rtl.golden.elementwise.operands import Operands

__all__ = ["Operands", "element_index", "element_words", "load_words", "store_words"]
