"""Bit-exact arithmetic of the machine: format conversions, FP32 operations, random words for rounding.

Functions broadcast numpy arrays of any shape. Bit patterns are unsigned integers as wide as the storage word; FP32
values are float32.
"""

from neuroncore_rtl.golden.arith.codec import canonical, canonical_value, decode, operand, storage_dtype
from neuroncore_rtl.golden.arith.divide import divide_fp32
from neuroncore_rtl.golden.arith.fused import multiply_add_fp32, multiply_fp32
from neuroncore_rtl.golden.arith.mac import add_fp32, fma_fp32, mac
from neuroncore_rtl.golden.arith.odd import round_once, round_to_odd
from neuroncore_rtl.golden.arith.power import power_fp32
from neuroncore_rtl.golden.arith.remainder import fmod_fp32, mod_fp32
from neuroncore_rtl.golden.arith.rounding import round_fp32, round_stochastic
from neuroncore_rtl.golden.arith.threefry import random_words, threefry2x32
from neuroncore_rtl.golden.arith.widen import integers, saturate, widen

__all__ = [
    "add_fp32", "canonical", "canonical_value", "decode", "divide_fp32", "fma_fp32", "fmod_fp32", "integers", "mac",
    "mod_fp32", "multiply_add_fp32", "multiply_fp32", "operand", "power_fp32", "random_words", "round_fp32",
    "round_once", "round_stochastic", "round_to_odd", "saturate", "storage_dtype", "threefry2x32", "widen",
]  # fmt: skip
