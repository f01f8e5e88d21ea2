"""Attention of any size on golden, with any order of queues, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.program import Program, dma_copy
from neuroncore_rtl.kernels.tiling.transfer import load, load_together, store
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.tb.tests.kernels import derivatives
from tests.kernels.running import CONFIGS, hbm_after

CONFIGS = CONFIGS | {"square": Config(rows=16, columns=16)}


def random_operand(rng, program, name, shape, spread=1.0):
    return program.space.hbm(name, BF16, shape), encode(rng.normal(0, spread, size=shape), BF16)


def heads_of(rng, program, count, queries, keys, width, features, spread=1.0):
    heads, inputs, numbers = [], [], []
    for number in range(count):
        shapes = {"q_t": (width, queries), "k_t": (width, keys), "v": (keys, features)}
        placements = [random_operand(rng, program, f"{name}{number}", shape, spread) for name, shape in shapes.items()]
        heads.append(Head(*(load(program, tensor) for tensor, _ in placements)))
        inputs += placements
        q_t, k_t, v = (decode(codes, BF16) for _, codes in placements)
        numbers.append((q_t.T, k_t.T, v))
    return heads, inputs, numbers


@pytest.mark.parametrize("causal", (False, True), ids=("all", "causal"))
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize(
    ("count", "queries", "keys", "width", "features"),
    [(1, 1, 1, 1, 1), (2, 9, 13, 6, 7), (3, 11, 11, 4, 3), (1, 6, 530, 3, 5)],
    ids=lambda size: str(size),
)
def test_attention_is_near_float64(rng, config, count, queries, keys, width, features, causal):
    program = Program(config)
    heads, inputs, numbers = heads_of(rng, program, count, queries, keys, width, features, spread=2.0)
    y = program.space.hbm("y", FP32, (queries, count * features))
    store(program, y, attention(program, heads, causal=causal, fmt=FP32).out)
    found = y.elements(hbm_after(program, inputs, rng)).view(np.float32)
    exact = np.concatenate([derivatives.attention(*one, causal) for one in numbers], axis=1)
    # The weights are rounded once to BF16; the errors of the FP32 sums are negligible.
    np.testing.assert_allclose(found, exact, atol=1.1 * 2.0**-8 * max(np.abs(v).max() for _, _, v in numbers))


def test_what_is_returned_gives_the_weights_again(rng):
    """The gradient uses exp(scores * scale + bias) * inverse, which must equal the weights, for several key blocks."""
    program = Program(CONFIGS["tiny"])
    heads, inputs, numbers = heads_of(rng, program, 2, 5, 520, 4, 3)
    rooms = {what: program.space.hbm(what, FP32, (5, 2)) for what in ("biases", "inverses")}
    result = attention(program, heads, causal=True, scale=0.25)
    for what, room in rooms.items():
        store(program, room, getattr(result, what))
    hbm = hbm_after(program, inputs, rng)
    biases, inverses = (room.elements(hbm).view(np.float32).astype(float) for room in rooms.values())
    for head, (q, k, _) in enumerate(numbers):
        scores = 0.25 * q @ k.T
        hidden = ~np.tri(5, 520, 515, dtype=bool)
        weights = np.where(hidden, 0, np.exp(scores + biases[:, head : head + 1])) * inverses[:, head : head + 1]
        np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
        assert np.allclose(biases[:, head], -np.where(hidden, -np.inf, scores).max(1), atol=1e-5)


def test_scores_of_any_size_do_not_overflow(rng):
    program = Program(CONFIGS["tiny"])
    heads, inputs, numbers = heads_of(rng, program, 1, 7, 9, 4, 3, spread=1e4)
    y = program.space.hbm("y", BF16, (7, 3))
    store(program, y, attention(program, heads, causal=True).out)
    found = decode(y.elements(hbm_after(program, inputs, rng)), BF16)
    np.testing.assert_allclose(found, derivatives.attention(*numbers[0], causal=True), rtol=2.0**-6, atol=2.0**-6)


def test_tiles_are_finished_when_they_are_there(rng):
    program = Program(CONFIGS["odd"])
    heads, inputs, _ = heads_of(rng, program, 3, 12, 14, 4, 7)
    early, y = (program.space.hbm(name, BF16, (12, 21)) for name in ("early", "y"))
    placed = []

    def finish(out, rows, columns):
        placed.append((rows.start, columns.start))
        program.append(dma_copy(early[rows, columns], out))

    store(program, y, attention(program, heads, causal=True, finish=finish).out)
    hbm = hbm_after(program, inputs, rng)
    assert np.array_equal(early.elements(hbm), y.elements(hbm))
    down, up = [0, 5, 10], [10, 5, 0]
    assert placed == [(row, 7 * head) for head, rows in enumerate((down, up, down)) for row in rows]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_matrices_that_come_together_are_those_that_come_alone(rng, config):
    program = Program(config)
    placements = [random_operand(rng, program, name, shape) for name, shape in (("a", (21, 90)), ("b", (9, 31)))]
    sources = [tensor for tensor, _ in placements]
    targets = [program.space.hbm(f"{source.name} again", BF16, source.shape) for source in sources]
    for target, matrix in zip(targets, load_together(program, sources, 16), strict=True):
        store(program, target, matrix)
    hbm = hbm_after(program, placements, rng)
    for target, (_, codes) in zip(targets, placements, strict=True):
        assert np.array_equal(target.elements(hbm), codes)
