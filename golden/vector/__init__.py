"""Vector engine: bit-exact equations on arrays of words, and an interpreter of its instructions.

Words are FP32 bit patterns or INT32; `golden.elementwise.load_words` and `store_words` convert codes of any format.
"""

from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.golden.vector.engine import VectorEngine
from neuroncore_rtl.golden.vector.operations import chain, nonzero, reciprocal
from neuroncore_rtl.golden.vector.position import affine_mask, dropped, iota, transpose
from neuroncore_rtl.golden.vector.reduction import negative, reduce_words, running_sum, scan
from neuroncore_rtl.golden.vector.search import find_index8, match_replace8, max8
from neuroncore_rtl.golden.vector.statistics import bn_aggr, bn_stats

__all__ = [
    "VectorEngine", "affine_mask", "alu", "bn_aggr", "bn_stats", "chain", "dropped", "find_index8", "iota",
    "match_replace8", "max8", "negative", "nonzero", "reciprocal", "reduce_words", "running_sum", "scan", "transpose",
]  # fmt: skip
