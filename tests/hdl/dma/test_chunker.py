from itertools import product

import pytest

from neuroncore_rtl.hdl.dma.chunker import Chunker
from neuroncore_rtl.hdl.dma.job import Run, chunk_layout
from neuroncore_rtl.hdl.memory.port import PARTITION_BITS
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, Storage
from tests.hdl.dma.chunks import grids
from tests.hdl.simulation import WARM_UP, drive, simulated
from tests.hdl.streams import play

SIZE, RUNS = 8, 150
GRIDS = grids(SIZE)


def any_run(rng):
    storage = Storage(int(rng.integers(3)))
    most = GRIDS[storage] * int(rng.integers(1, 6))
    return {
        "storage": storage,
        "partition": int(rng.integers(1 << PARTITION_BITS)),
        "address": int(rng.integers((1 << HBM_ADDRESS_BITS) - most)),
        "bytes": int(rng.integers(1, most + 1)),
    }


def chunks_of(run):
    grid, address, remaining = GRIDS[run["storage"]], run["address"], run["bytes"]
    while remaining:
        count = min(grid - address % grid, remaining)
        yield run | {"address": address, "bytes": count}
        address, remaining = address + count, remaining - count


@pytest.mark.parametrize("stall", [0, 0.4])
def test_runs_are_cut_at_the_grid_of_their_memory_without_gaps(stall, rng):
    dut, runs = Chunker(SIZE), [any_run(rng) for _ in range(RUNS)]
    wanted = [chunk_layout(SIZE).const(chunk).as_bits() for run in runs for chunk in chunks_of(run)]
    options = {"stall": stall, "seed": 10946, "warm_up": WARM_UP, "watch": (dut.busy, dut.o.valid)}
    played = play(dut, {"i": [Run.const(run).as_bits() for run in runs]}, {"o": len(wanted)}, **options)
    assert played.payloads["o"] == wanted
    assert all(busy == valid for busy, valid in played.watched)
    first = played.cycles["o"][0]
    assert stall or played.cycles["o"] == list(range(first, first + len(wanted)))


@simulated(lambda: Chunker(SIZE), each=product(range(11, 41), (0, 5), GRIDS))
async def test_long_runs_do_not_end(ctx, dut, case):
    bit, few, storage = case
    drive(ctx, dut.i, valid=1, payload={"storage": storage, "bytes": (1 << bit) + few * GRIDS[storage] + 1})
    drive(ctx, dut.o, ready=1)
    await ctx.tick()
    for _ in range(8):
        *_, ready, valid, count = await ctx.tick().sample(dut.i.ready, dut.o.valid, dut.o.payload.bytes)
        assert valid and not ready and count == GRIDS[storage]
