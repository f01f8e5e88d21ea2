import numpy as np
import pytest

from neuroncore_rtl.hdl.vector.transpose import Transposer
from tests.hdl.simulation import drive, packed, simulated
from tests.hdl.vector.units import pause, rest

SEED = 20260405


@pytest.mark.parametrize("size", [1, 2, 4, 5, 32])
@pytest.mark.parametrize("width", [0, 1, 2])
@simulated(Transposer)
async def test_columns_become_rows(ctx, unit, size, width, rng):
    blocks, columns = rng.integers(0, 1 << 32, (4, size, size), np.uint32), []
    ctx.set(unit.width, width)
    flush = np.zeros((1, size, size), np.uint32)
    for number, column in enumerate(np.concatenate([blocks, flush]).reshape(-1, size)):
        drive(ctx, unit, step=1, column=packed(column), first=number % size == 0)
        await ctx.tick()
        drive(ctx, unit, step=0, column=int(rng.integers(1 << 32)))
        await rest(ctx, pause(rng))
        columns.append(np.frombuffer(ctx.get(unit.out).to_bytes(4 * size, "little"), "<u4"))
    expected = blocks.transpose(0, 2, 1) & np.uint32((1 << (8 << width)) - 1)
    assert np.array(columns[size:]).reshape(blocks.shape).tolist() == expected.tolist()
