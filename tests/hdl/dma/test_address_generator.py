from itertools import product
from math import prod

import pytest

from neuroncore_rtl.hdl.dma.address_generator import DmaAddressGenerator
from neuroncore_rtl.hdl.memory.port import PARTITION_BITS
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, HBM_ADDRESS_BITS, Storage
from tests.hdl.simulation import WARM_UP, drive, pulse, simulated

SEED = 1597
OUTERMOST = DMA_DIMENSIONS - 1


def runs_of(side, rows) -> list[tuple[int, int]]:
    found = []
    for number, row in enumerate(rows or [{"offset": 0}] * (side["last"][OUTERMOST] + 1)):
        if row.get("bad"):
            break
        for inner in product(*(range(last + 1) for last in reversed(side["last"][:OUTERMOST]))):
            index = (*reversed(inner), number)
            moves = [side["step"][d] * index[d] for d in range(DMA_DIMENSIONS)]
            partition = side["partition"] + (moves[side["axis"]] if side["axis"] < DMA_DIMENSIONS else 0)
            far = sum(move << side["size"] for d, move in enumerate(moves) if d != side["axis"])
            if not row.get("skip"):
                found.append((partition % (1 << PARTITION_BITS), (side["address"] + far + row["offset"]) % (1 << 40)))
    return found


def any_side(rng):
    shape = rng.permutation([0, 0, 1, 1, 2, 2, 3, 5])[:DMA_DIMENSIONS]
    return {
        "storage": Storage(int(rng.integers(3))),
        "size": int(rng.integers(3)),
        "address": int(rng.integers(1 << HBM_ADDRESS_BITS)),
        "partition": int(rng.integers(1 << PARTITION_BITS)),
        "axis": int(rng.integers(DMA_DIMENSIONS + 1)),
        "bytes": int(rng.integers(1 << HBM_ADDRESS_BITS + 1)),
        "last": [int(last) for last in shape],
        "step": [int(rng.integers(-1 << 31, 1 << 31)) for _ in range(DMA_DIMENSIONS)],
    }


def any_rows(rng, count):
    rows = [{"offset": int(rng.integers(1 << HBM_ADDRESS_BITS)), "skip": int(rng.random() < 0.3)} for _ in range(count)]
    if rng.random() < 0.3:
        rows[-1] |= {"bad": 1, "skip": 0}
    return rows


async def begin(ctx, dut, side, indexed=0):
    drive(ctx, dut.start, side=side, indexed=indexed)
    await pulse(ctx, dut.start.valid)


@pytest.mark.parametrize("stall", [0, 0.4])
@simulated(DmaAddressGenerator, warm_up=WARM_UP)
async def test_a_run_per_cycle_and_a_cycle_per_row(ctx, dut, stall, rng):
    async def walk(side, rows):
        expected, given, found = runs_of(side, rows), iter(rows), []
        await begin(ctx, dut, side, int(bool(rows)))
        row, cycles = None, 0
        while ctx.get(dut.busy):
            drive(ctx, dut.o, ready=rng.random() >= stall)
            if row is None and rng.random() >= stall:
                row = next(given, None)
            drive(ctx, dut.rows, valid=row is not None, payload=row or {})
            *_, valid, run, taken, ready, rows_valid = await ctx.tick().sample(
                dut.o.valid, dut.o.payload, dut.o.ready, dut.rows.ready, dut.rows.valid
            )
            assert not (valid and ready) and (valid or rows)
            cycles += 1
            if ready and rows_valid:
                row = None
            if valid and taken:
                assert (int(run.storage.value), run.bytes) == (side["storage"], side["bytes"])
                found.append((run.partition, run.address))
            assert cycles < 1000 + 10 * len(expected)
        assert found == expected
        assert stall or cycles == len(expected) + len(rows)
        drive(ctx, dut.rows, valid=0)
        return len(found)

    assert not ctx.get(dut.busy | dut.o.valid | dut.rows.ready)
    sides = [any_side(rng) for _ in range(60)]
    rows = [any_rows(rng, side["last"][OUTERMOST] + 1) if n % 3 else [] for n, side in enumerate(sides)]
    assert sum([await walk(*each) for each in zip(sides, rows, strict=True)]) > 2000


@simulated(lambda: DmaAddressGenerator(packets=True), warm_up=WARM_UP)
async def test_the_first_run_of_an_outermost_index_is_marked(ctx, dut, rng):
    marked = 0
    for _ in range(60):
        side = any_side(rng)
        several = [last + 1 for last in side["last"] if last]
        await begin(ctx, dut, side, False)
        drive(ctx, dut.o, ready=1)
        for number in range(prod(several)):
            *_, valid, first = await ctx.tick().sample(dut.o.valid, dut.first)
            assert valid and first == (number % prod(several[:-1]) == 0)
            marked += first
        drive(ctx, dut.o, ready=0)
        assert not ctx.get(dut.busy)
    assert marked > 120


@simulated(DmaAddressGenerator, each=product(range(DMA_DIMENSIONS), range(4, 16), (0, 2)))
async def test_long_walks_do_not_end(ctx, dut, case):
    dimension, bit, few = case
    lasts = [0] * DMA_DIMENSIONS
    lasts[dimension] = (1 << bit) + few
    await begin(ctx, dut, {"last": lasts, "axis": OUTERMOST + 1})
    drive(ctx, dut.o, ready=1)
    for _ in range(10):
        assert (await ctx.tick().sample(dut.busy))[-1]
    drive(ctx, dut.o, ready=0)
