"""Training of the digits network as one image."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.models.digits.gradients import initial_digits
from neuroncore_rtl.kernels.models.digits.trainer import DigitsTrainer
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.tb.tests.learning.train import Task, reference
from tests.kernels.running import TINY, every_config, read_values, run_ordered

SEED = 71
SIZES = (11, 7, 5)
EXAMPLES = 10


def task(rng, options):
    labels = rng.integers(0, SIZES[2], EXAMPLES)
    images = rng.uniform(0, 0.5, (EXAMPLES, SIZES[0]))
    images[np.arange(EXAMPLES), labels] = 1
    start = [
        decode(encode(part, fmt), fmt) for part, fmt in zip(initial_digits(rng, SIZES), 2 * (BF16, FP32), strict=True)
    ]
    return Task(decode(encode(images, BF16), BF16), labels, start, options)


def train(task, config, batch, steps, seed=None, order=None):
    trainer = DigitsTrainer(config, EXAMPLES, SIZES, batch, steps, task.options, seed)
    outcome = run_ordered(trainer.image(task.images, task.labels, task.start, encode), order)
    return [read_values(tensor, outcome.hbm) for tensor in (trainer.losses, *trainer.parameters)]


@pytest.mark.parametrize("seed", (None, 3), ids=("rne", "sr"))
@every_config
def test_every_machine_learns_what_float64_learns(rng, config, seed):
    given = task(rng, AdamW(rate=0.02))
    losses, *parameters = train(given, config, 7, 12, seed, rng)
    expected = reference(given, 7, 12)
    found = losses.reshape(12, 7).mean(axis=1)
    np.testing.assert_allclose(found, expected.losses, rtol=0.03)
    assert found[-1] < 0.7 * found[0]
    for part, exact in zip(parameters, expected.parameters, strict=True):
        np.testing.assert_allclose(part, exact, atol=0.02)


@pytest.mark.parametrize("batch", (3, 10))
def test_images_come_in_turn_and_their_losses_go_where_they_belong(rng, batch):
    """With a learning rate of 0 an image has the same loss each time."""
    losses, *parameters = train(task(rng, AdamW(rate=0)), TINY, batch, 9)
    losses = losses[:, 0]
    assert len(np.unique(losses[:EXAMPLES])) == EXAMPLES
    assert np.array_equal(losses, np.resize(losses[:EXAMPLES], len(losses)))


def test_no_two_roundings_have_the_same_random_words():
    steps = 20
    trainer = DigitsTrainer(TINY, EXAMPLES, SIZES, 4, steps, AdamW(), seed=5)
    rounded = [one for one in (entry.instruction for entry in trainer.program.entries) if getattr(one, "stochastic", 0)]
    assert len({(one.seed, one.stream) for one in rounded}) == len(rounded) == 2 * steps
    assert trainer.runs == [0, *(section for step in range(steps) for section in (1, 2 + step)), 2 + steps]
    # Element [8, 2] of the first weight [11, 7] is in lane 0 of its third tile.
    index = rounded[0].index
    assert index.base + 0 * index.partition + 2 * index.steps[0] + 2 * index.steps[1] == 8 * 7 + 2
    assert index.partition == 7


def test_seeds_and_roundings_differ_and_repeat(rng):
    given = task(rng, AdamW(rate=0.02))
    weights = [train(given, TINY, 4, 3, seed)[1] for seed in (None, 1, 2, 1)]
    assert [np.array_equal(weights[-1], weight) for weight in weights] == [False, True, False, True]


def test_refusals():
    with pytest.raises(ValueError, match="batch must be between 1 and the 10 images, not 11"):
        DigitsTrainer(TINY, EXAMPLES, SIZES, 11, 3, AdamW())
    with pytest.raises(ValueError, match="bytes must lie from 0 to 196608"):
        assert DigitsTrainer(TINY, EXAMPLES, (64, 4096, 10), 4, 3, AdamW()).program.entries
