from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.golden.memory.dma import dma_copy
from neuroncore_rtl.hdl.dma.caster import Caster
from neuroncore_rtl.hdl.dma.job import bytes_layout, piece_layout
from neuroncore_rtl.spec import isa, timing
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP32
from tests.hdl.dma.copies import tensor
from tests.hdl.simulation import WARM_UP
from tests.hdl.streams import play

SIZE = 8


def piece(src, dst, raw, offset=0):
    part = {"data": int.from_bytes(raw, "little") << 8 * offset, "offset": offset, "count": len(raw)}
    return piece_layout(SIZE).const({"bytes": part, "formats": {"src": src.code, "dst": dst.code}}).as_bits()


def codes_of(rng, fmt):
    ones = [1 << bit for bit in range(fmt.bits)]
    codes = [0, (1 << fmt.bits) - 1, *ones, *(one - 1 for one in ones[1:])]
    if fmt.is_float:
        infinity = (1 << fmt.bits - 1) - (1 << fmt.padding_bits + fmt.mantissa_bits)
        codes += [infinity, *(infinity ^ one for one in ones)]
    return np.array(codes + rng.integers(0, 1 << fmt.bits, 20, np.uint64).tolist(), f"uint{fmt.bits}")


@pytest.mark.parametrize(("stages", "stall", "share"), [(1, {}, 1), *((n, {"i": 0.3, "o": 0.4}, 8) for n in (2, 3, 4))])
def test_every_cast_is_that_of_golden(rng, stages, stall, share):
    words, expected = [], []
    for src, dst in product(FORMATS.values(), repeat=2):
        codes, (width, to) = codes_of(rng, src)[::share].copy(), (src.bits // 8, dst.bits // 8)
        memory = np.zeros(4096, np.uint8)
        memory[: len(codes) * width] = codes.view(np.uint8)
        sides = {"src": tensor(isa.Storage.HBM, fmt=src), "dst": tensor(isa.Storage.HBM, 2048, fmt=dst)}
        dma_copy(isa.DmaCopy(shape=(len(codes),), **sides), memory, None, None)
        raw, cast, first = codes.tobytes(), memory[2048:].tobytes(), 0
        while first < len(raw):
            offset = width * int(rng.integers(SIZE // width))
            end = min(len(raw), first + width * int(rng.integers(1, (SIZE - offset) // width + 1)))
            words.append(piece(src, dst, raw[first:end], offset))
            numbers = range(first // width, end // width)
            found = [(int.from_bytes(cast[to * n : to * n + to], "little"), to) for n in numbers]
            expected += [(int.from_bytes(raw[first:end], "little"), end - first)] if src is dst else found
            first = end
    played = play(Caster(SIZE, 1, stages), {"i": words}, {"o": len(expected)}, stall=stall or 0.0, warm_up=WARM_UP)
    parts = map(bytes_layout(SIZE).from_bits, played.payloads["o"])
    assert [(part.data >> 8 * part.offset & (1 << 8 * part.count) - 1, part.count) for part in parts] == expected


@pytest.mark.parametrize("latency", [1, 3])
def test_cycles_of_a_cast(latency):
    played = play(Caster(SIZE, 1, latency), {"i": [piece(FP32, BF16, bytes(4))]}, {"o": 1})
    assert played.cycles["o"] == [timing.cast_latency(latency)]
