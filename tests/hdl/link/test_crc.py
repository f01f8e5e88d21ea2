import random
import zlib

import pytest

from neuroncore_rtl.hdl.link import crc, flit
from tests.hdl.simulation import simulate


def expected(word, width):
    return zlib.crc32(word.to_bytes((width + 7) // 8, "little"))


def check(width, words, wanted=None):
    dut = crc.Crc32(width)

    async def bench(ctx):
        for word in words:
            ctx.set(dut.i, word)
            assert ctx.get(dut.o) == (expected(word, width) if wanted is None else wanted), f"{word:#x}"

    simulate(dut, bench)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 31, 32, 33, *(flit.body_layout(size).size for size in (8, 16, 32, 64))])
def test_as_zlib(width):
    rng = random.Random(width)
    words = [0, (1 << width) - 1, *(1 << bit for bit in range(width)), *(rng.getrandbits(width) for _ in range(200))]
    check(width, words)


def test_check_value():
    check(72, [int.from_bytes(b"123456789", "little")], wanted=0xCBF43926)


def test_crc_of_zeros():
    assert [crc.crc_of_zeros(width) for width in range(1, 70)] == [expected(0, width) for width in range(1, 70)]
