"""The machine's arithmetic as equations: decode, round, multiply-accumulate, add, and the random words of rounding.

Every function takes numpy arrays of any shape (or scalars), broadcasts, and is exact to the bit. Bit patterns are
unsigned integers of the storage word's width, FP32 values are float32.
"""

from golden.arith.codec import canonical, decode, operand, storage_dtype
from golden.arith.mac import add_fp32, fma_fp32, mac
from golden.arith.rounding import round_fp32, round_stochastic
from golden.arith.threefry import random_words, threefry2x32

__all__ = [
    "add_fp32", "canonical", "decode", "fma_fp32", "mac", "operand", "random_words", "round_fp32", "round_stochastic",
    "storage_dtype", "threefry2x32",
]  # fmt: skip
