import random
import zlib

import pytest

from neuroncore_rtl.hdl.link import crc, flit
from tests.hdl.simulation import simulated


def expected(word, width):
    return zlib.crc32(word.to_bytes((width + 7) // 8, "little"))


@pytest.mark.parametrize("width", [1, 7, 8, 9, 31, 32, 33, *(flit.body_layout(size).size for size in (8, 16, 32, 64))])
@simulated(lambda width: crc.Crc32(width))
async def test_as_zlib(ctx, dut, width):
    rng = random.Random(width)
    words = [0, (1 << width) - 1, *(1 << bit for bit in range(width)), *(rng.getrandbits(width) for _ in range(200))]
    for word in words:
        ctx.set(dut.i, word)
        assert ctx.get(dut.o) == expected(word, width), f"{word:#x}"


def test_crc_of_zeros():
    assert [crc.crc_of_zeros(width) for width in range(1, 70)] == [expected(0, width) for width in range(1, 70)]
