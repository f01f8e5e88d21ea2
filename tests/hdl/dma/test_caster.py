"""A cast with more stages: the same bytes, later."""

from random import Random

import pytest

from neuroncore_rtl.hdl.dma.caster import Caster
from neuroncore_rtl.hdl.dma.job import bytes_layout, piece_layout
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP32
from tests.hdl.streams import play

SIZE = 8


def pieces(seed, count):
    """Return pieces of whole elements of any two formats, and how many results each becomes with one lane."""
    dice, words, results = Random(seed), [], 0
    for _ in range(count):
        src, dst = (dice.choice(list(FORMATS.values())) for _ in range(2))
        width = src.bits // 8
        first = dice.randrange(SIZE // width)
        elements = dice.randint(1, SIZE // width - first)
        part = {"data": dice.getrandbits(8 * SIZE), "offset": first * width, "count": elements * width}
        formats = {"src": src.code, "dst": dst.code}
        words.append(piece_layout(SIZE).const({"bytes": part, "formats": formats, "bad": 0}).as_bits())
        results += 1 if src is dst else elements
    return words, results


def bytes_of(played):
    """Return the bytes that count of each result."""
    for word in played.payloads["o"]:
        part = bytes_layout(SIZE).from_bits(word)
        yield part.data >> 8 * part.offset & (1 << 8 * part.count) - 1, part.count


@pytest.mark.parametrize("latency", [2, 3, 4])
def test_more_stages_cast_the_same(latency, seed=2029):
    words, results = pieces(seed, 60)
    found = {}
    for stages in (1, latency):
        played = play(Caster(SIZE, 1, stages), {"i": words}, {"o": results}, stall={"i": 0.3, "o": 0.4}, seed=seed)
        found[stages] = list(bytes_of(played))
    assert found[latency] == found[1]


@pytest.mark.parametrize("latency", [1, 3])
def test_cycles_of_a_cast(latency):
    word = piece_layout(SIZE).const({"bytes": {"count": 4}, "formats": {"src": FP32.code, "dst": BF16.code}})
    played = play(Caster(SIZE, 1, latency), {"i": [word.as_bits()]}, {"o": 1})
    assert played.cycles["o"] == [timing.cast_latency(latency)]
