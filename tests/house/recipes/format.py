"""Check of the format's recipe: golden decodes and rounds as gfloat, the hardware widens and rounds as golden."""

import numpy as np

from neuroncore_rtl.golden.arith import canonical, decode, round_fp32, widen
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.spec.formats import FP8E2M5, MATMUL_FORMATS
from neuroncore_rtl.tb.stimulus.operands import random_fp32
from tests.hdl.arith.units import run
from tests.oracles.libraries import gfloat_decode, gfloat_round

CODES = np.arange(256, dtype=np.uint8)
WORDS = random_fp32(np.random.default_rng(1), 200)

assert FP8E2M5 in MATMUL_FORMATS
np.testing.assert_array_equal(decode(CODES, FP8E2M5), gfloat_decode(CODES, FP8E2M5))
np.testing.assert_array_equal(decode(round_fp32(WORDS, FP8E2M5), FP8E2M5), gfloat_round(WORDS, FP8E2M5))

wide = widen(CODES, FP8E2M5)
selected = np.full(len(CODES), FP8E2M5.code)
assert run(Widen(), {"word": CODES, "dtype": selected}, "fp32") == wide.tolist()
for words, codes in ((wide, canonical(CODES, FP8E2M5)), (WORDS, round_fp32(WORDS, FP8E2M5))):
    cases = {"value": words, "format": np.full(len(words), FP8E2M5.code)}
    assert run(Fp32Rounder(1), cases, "word") == codes.tolist()
