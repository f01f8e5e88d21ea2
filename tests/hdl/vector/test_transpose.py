import numpy as np
import pytest

from neuroncore_rtl.hdl.vector.transpose import Transposer
from tests.hdl.simulation import drive, packed, simulated
from tests.hdl.vector.units import pause, rest

SEED = 20260405


@simulated(Transposer)
async def transpose_blocks(ctx, unit, size, blocks, rng, width=2, late_first=0):
    columns = []
    ctx.set(unit.width, width)
    flush = np.zeros((1, size, size), np.uint32)
    for number, column in enumerate(np.concatenate([blocks, flush]).reshape(-1, size)):
        drive(ctx, unit, step=1, column=packed(column), first=number % size == late_first)
        await ctx.tick()
        drive(ctx, unit, step=0, column=int(rng.integers(1 << 32)))
        await rest(ctx, pause(rng))
        columns.append(np.frombuffer(ctx.get(unit.out).to_bytes(4 * size, "little"), "<u4"))
    return np.array(columns[size:], np.uint32).reshape(blocks.shape)


@pytest.mark.parametrize("size", [1, 2, 4, 5, 32])
@pytest.mark.parametrize("width", [0, 1, 2])
def test_columns_become_rows(size, width, rng):
    blocks = rng.integers(0, 1 << 32, (4, size, size), np.uint32)
    expected = blocks.transpose(0, 2, 1) & np.uint32((1 << (8 << width)) - 1)
    assert transpose_blocks(size, blocks, rng, width).tolist() == expected.tolist()


def test_a_wrong_start_of_a_block_is_detected(rng):
    blocks = rng.integers(0, 1 << 32, (4, 4, 4), np.uint32)
    assert (transpose_blocks(4, blocks, rng, late_first=1) != blocks.transpose(0, 2, 1)).any()
