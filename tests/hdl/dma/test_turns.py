"""Packets: when one begins, and turns of the engines, one at a time, round robin, a minimum time apart."""

import random

import pytest

from neuroncore_rtl.hdl.dma.turns import PacketGate, PacketTurns
from neuroncore_rtl.spec.isa import Storage
from tests.hdl.simulation import drive, next_turn, simulated

CASES = [(1, 1, 0), (3, 1, 0), (4, 5, 20), (4, 5, 36), (16, 26, 0)]


@pytest.mark.parametrize(("count", "interval", "warm_up"), CASES)
@simulated(PacketTurns)
async def test_turns_go_round_and_are_apart(ctx, dut, count, interval, warm_up):
    rng, last, due, given = random.Random(count), count - 1, 0, 0
    for cycle in range(100 * interval):
        every = (1 << count) - 1 if cycle < interval else 0  # the first turn shows the last one before it
        requests = every | rng.getrandbits(count) & rng.getrandbits(count)
        drive(ctx, dut, requests=requests)
        *_, turns = await ctx.tick().sample(dut.turns)
        served = requests and cycle >= due
        last = next_turn(last, requests, count) if served else last
        due = cycle + interval if served else due
        given += bool(served)
        assert turns == (1 << last if served else 0)
    assert given >= 10


@simulated(PacketGate)
async def test_a_packet_ends_at_the_next_index_and_after_64_runs(ctx, dut, rng):
    runs, passed, begun = 0, 0, 0
    for length in (1, 2, 63, 64, 65, 128, 130, *rng.integers(1, 200, 20)):
        storage = Storage.HBM if length in (64, 65, 128) else Storage(int(rng.integers(3)))
        for number in range(length):
            begins = storage == Storage.HBM and (number == 0 or runs == 64)
            address, taken = int(rng.integers(1 << 30)), False
            drive(ctx, dut.i, valid=1, payload={"storage": storage, "address": address})
            drive(ctx, dut, first=int(number == 0))
            while not taken:
                ready, turn = (int(bit) for bit in rng.integers(2, size=2))
                drive(ctx, dut.o, ready=ready)
                drive(ctx, dut, turn=turn)
                *_, request, valid, run, taken = await ctx.tick().sample(
                    dut.request, dut.o.valid, dut.o.payload, dut.i.ready
                )
                may = turn or not begins
                assert (request, valid, taken) == (begins and ready, may, ready and may) and run.address == address
            runs = 1 if begins else runs + 1 if storage == Storage.HBM else 0
            passed, begun = passed + 1, begun + begins
    drive(ctx, dut.i, valid=0)
    assert passed > 1000 and begun > 15
