# amaranth: UnusedElaboratable=no

"""The reader of a DMA engine alone: chunks of both memories in any turn, of which either may take long."""

from collections import deque

import pytest

from neuroncore_rtl.hdl.dma.reader import Reader
from neuroncore_rtl.hdl.memory.port import LineRead, Storage
from tests.hdl.simulation import drive, simulate

SEED = 2311

SIZE, CHUNKS = 8, 300


def data_at(storage, address):
    """The beat that a memory has at an address."""
    return (address // SIZE * 2 + (storage == Storage.HBM)) * 0x9E3779B97F4A7C15 % (1 << 8 * SIZE)


@pytest.mark.parametrize("latency", [0, 1])
@pytest.mark.parametrize("patience", [1.0, 0.3, 0.05])
def test_pieces_come_in_the_order_of_their_chunks_whichever_memory_is_slow(latency, patience, rng):
    """HBM answers in the cycle behind a request; a line is taken in a share `patience` of the cycles."""
    dut = Reader(SIZE, 32, latency)
    storages = [(Storage.SBUF, Storage.HBM)[n] for n in rng.integers(2, size=CHUNKS)]
    addresses = [int(rng.integers(1 << 14)) * SIZE for _ in range(CHUNKS)]

    async def bench(ctx):
        found, sent = [], 0
        beats, lines = deque(), deque([None] * LineRead.LATENCY[latency])
        drive(ctx, dut.axi.ar, ready=1)
        drive(ctx, dut.o, ready=1)
        for _ in range(100 * CHUNKS):
            at = min(sent, CHUNKS - 1)
            payload = {"storage": storages[at], "partition": 0, "address": addresses[at], "bytes": SIZE}
            drive(ctx, dut.i, valid=sent < CHUNKS, payload=payload)
            ctx.set(dut.line.ready, int(rng.random() < patience))
            come = beats.popleft() if beats else None
            drive(ctx, dut.axi.r, valid=come is not None, payload={"data": come or 0, "last": 1, "resp": 0})
            ctx.set(dut.line.data, lines.popleft() or 0)
            await ctx.delay(1e-9)
            taken = ctx.get(dut.line.valid & dut.line.ready)
            lines.append(data_at(Storage.SBUF, ctx.get(dut.line.address)) if taken else None)
            if ctx.get(dut.axi.ar.valid):
                beats.append(data_at(Storage.HBM, ctx.get(dut.axi.ar.payload.addr)))
            if ctx.get(dut.o.valid):
                found.append(ctx.get(dut.o.payload.bytes.data))
            sent += ctx.get(dut.i.valid & dut.i.ready)
            await ctx.tick()
            if len(found) == CHUNKS:
                break
        assert found == [data_at(*where) for where in zip(storages, addresses, strict=True)]
        await ctx.tick()
        assert not ctx.get(dut.busy)

    simulate(dut, bench)
