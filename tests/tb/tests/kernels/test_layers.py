"""Layers on the RTL of the core."""

import pytest

from tests.tb.reports import passed

BF16 = 2.0**-8
"""Half an ulp of BF16 at 1."""

BOUNDS = {
    # The result is rounded once.
    "linear PRESET=tiny M=9 K=13 N=21 SEED=2 STALL=40": 1.01 * BF16,
    "linear PRESET=tiny M=9 K=13 N=6 LAYOUT=rows SEED=3": 1.01 * BF16,
    "swiglu PRESET=tiny M=5 K=9 N=10 SEED=4": 3 * BF16,  # the hidden layer is rounded as well
    "rope PRESET=tiny SEQ=6 HEADS=3 DIM=6 SEED=5 STALL=40": 1.01 * BF16,
    "decoder PRESET=tiny SEQ=3 DIM=12 HEADS=3 HIDDEN=20 SEED=6": 3 * BF16,
    "conv2d PRESET=tiny IMAGES=1 CHANNELS=5 HEIGHT=6 WIDTH=7 N=6 SEED=4 STALL=40": 1.01 * BF16,
    "conv2d PRESET=tiny IMAGES=1 CHANNELS=3 HEIGHT=6 WIDTH=7 N=2 STRIDE=2 SEED=5": 1.01 * BF16,
    "linear_backward PRESET=tiny M=9 K=7 N=10 ADD=1 SEED=2 STALL=40": 1.01 * BF16,
    "layernorm_backward PRESET=tiny M=6 N=9 SEED=3": 2 * BF16,
    "attention_backward PRESET=tiny SEQ=6 KEYS=9 DIM=5 HEADS=2 CAUSAL=1 SEED=3 STALL=40": 3 * BF16,
    "encoder_backward PRESET=tiny SEQ=4 DIM=6 HEADS=2 HIDDEN=5 SEED=3": 8 * BF16,
    "embedding PRESET=tiny VOCAB=9 SEQ=7 DIM=5 SEED=4 STALL=40": 1.01 * BF16,
    # Weights and results are rounded.
    "attention PRESET=tiny SEQ=6 DIM=6 HEADS=2 SEED=4": 2.01 * BF16,
    "attention PRESET=tiny SEQ=5 KEYS=9 DIM=3 CAUSAL=1 SEED=5 STALL=40": 2.01 * BF16,
    # All matrices between x and y are rounded as well.
    "encoder PRESET=tiny SEQ=6 DIM=8 HEADS=2 HIDDEN=10 SEED=6 STALL=40": 3 * BF16,
}
"""By TEST and variables: bound on the error, relative to the largest result."""


@pytest.mark.parametrize("words", BOUNDS)
def test_layers_are_golden_and_near_float64(words):
    report = passed(*words.split(maxsplit=1))
    errors = [value["max_over_largest_result"] for key, value in report.rows.items() if key[:5] == "error"]
    assert max(errors) < BOUNDS[words]
