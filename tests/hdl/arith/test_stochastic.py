# amaranth: UnusedElaboratable=no

"""The generator against its published known answers, reproducible stochastic rounding against golden."""

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.stochastic import StochasticRounder
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP8E4M3, FP16, INT8
from neuroncore_rtl.tb.stimulus import operands as stimulus

KNOWN_ANSWERS = [
    # key, counter, result; word 0 first. Random123, tests/kat_vectors, "threefry2x32 20".
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def pair(words):
    """Two words as the ports carry them."""
    return int(words[0]) | int(words[1]) << 32


@pytest.mark.parametrize("rounds_per_stage", range(1, ROUNDS + 1))
def test_known_answers(run, rounds_per_stage):
    unit = Threefry2x32(rounds_per_stage)
    cases = [{"key": pair(key), "counter": pair(counter)} for key, counter, _ in KNOWN_ANSWERS]
    assert run(unit, cases) == [pair(result) for _, _, result in KNOWN_ANSWERS]
    assert unit.latency == -(-ROUNDS // rounds_per_stage)


def test_random_words_are_those_of_golden(run, rng):
    words = rng.integers(0, 1 << 32, (4, 200), np.uint32)
    cases = [{"key": pair((k0, k1)), "counter": pair((c0, c1))} for k0, k1, c0, c1 in words.T]
    expected = arith.threefry2x32((words[0], words[1]), (words[2], words[3]))
    assert run(Threefry2x32(), cases) == [pair(result) for result in zip(*expected, strict=True)]


@pytest.mark.parametrize("rounds_per_stage", (0, 21))
def test_rounds_per_stage_wrong(rounds_per_stage):
    with pytest.raises(ValueError, match=f"rounds_per_stage must be 1 to 20, not {rounds_per_stage}"):
        Threefry2x32(rounds_per_stage)


def tensor(rng, fmt, seed, stream):
    """Cases for a tensor of values that `fmt` can not all represent, with indices of 64 bits."""
    values, _ = stimulus.round_cases(rng, fmt, "rne", 60)
    index = rng.integers(0, 1 << 64, 60, np.uint64)
    index[:4] = (0, 1, (1 << 32) - 1, 1 << 32)
    cases = [
        {"value": value, "format": fmt.code, "seed": seed, "stream": stream, "index": place}
        for value, place in zip(values, index, strict=True)
    ]
    return cases, arith.round_stochastic(values, fmt, seed, stream, index).tolist()


@pytest.mark.parametrize(("rounds_per_stage", "round_latency"), [(4, 2), (1, 1), (7, 4), (20, 3)])
def test_rounds_as_golden(run, rng, rounds_per_stage, round_latency):
    cases, expected = [], []
    for number, fmt in enumerate(FORMATS.values()):
        more_cases, more_expected = tensor(rng, fmt, seed=0xDEADBEEF + number, stream=number)
        cases += more_cases
        expected += more_expected
    assert run(StochasticRounder(rounds_per_stage, round_latency), cases, "word") == expected


@pytest.mark.parametrize("fmt", (BF16, FP16, FP8E4M3, INT8), ids=lambda fmt: fmt.name)
def test_order_of_the_elements_changes_nothing(run, rng, fmt):
    cases, _ = tensor(rng, fmt, seed=1, stream=2)
    order = rng.permutation(len(cases))
    straight = run(StochasticRounder(), cases, "word")
    assert run(StochasticRounder(), [cases[i] for i in order], "word") == [straight[i] for i in order]
