import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from tests.hdl.arith.units import run
from tests.oracles.known import RANDOM123


def pair(words):
    return int(words[0]) | int(words[1]) << 32


@pytest.mark.parametrize("rounds_per_stage", range(1, ROUNDS + 1))
def test_known_answers(rounds_per_stage):
    unit = Threefry2x32(rounds_per_stage)
    known = [words for rounds, *words in RANDOM123 if rounds == ROUNDS]
    counters, keys, results = (list(map(pair, column)) for column in zip(*known, strict=True))
    assert run(unit, {"key": keys, "counter": counters}) == results
    assert unit.latency == -(-ROUNDS // rounds_per_stage)


def test_random_words_are_those_of_golden(rng):
    words = rng.integers(0, 1 << 32, (4, 200), np.uint32)
    expected = arith.threefry2x32((words[0], words[1]), (words[2], words[3]))
    keys, counters, results = (list(map(pair, zip(*of, strict=True))) for of in (words[:2], words[2:], expected))
    assert run(Threefry2x32(), {"key": keys, "counter": counters}) == results


@pytest.mark.parametrize("rounds_per_stage", (0, 21))
def test_rounds_per_stage_wrong(rounds_per_stage):
    with pytest.raises(ValueError, match=f"rounds_per_stage must be 1 to 20, not {rounds_per_stage}"):
        Threefry2x32(rounds_per_stage)
