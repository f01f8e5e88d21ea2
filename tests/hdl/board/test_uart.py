import random
from functools import partial

import pytest

from neuroncore_rtl.hdl.board.uart import UartReceiver, UartTransmitter, uart_divisor
from tests.hdl.simulation import offer, simulate, simulated


async def send(ctx, wire, data: bytes, bit: int) -> None:
    """Send bytes with `bit` clock cycles per bit."""
    for byte in data:
        for level in (0, *(byte >> n & 1 for n in range(8)), 1):
            ctx.set(wire, level)
            await ctx.tick().repeat(bit)


async def receive(ctx, wire, bit: int) -> bytes:
    """Return all bytes until the wire is quiet for 20 bits of `bit` clock cycles; the first one may take longer."""
    found, limit = bytearray(), 100_000
    while True:
        for _ in range(limit):
            if not ctx.get(wire):
                break
            await ctx.tick()
        else:
            return bytes(found)
        await ctx.tick().repeat(bit + bit // 2)
        value = 0
        for n in range(8):
            value |= ctx.get(wire) << n
            await ctx.tick().repeat(bit)
        assert ctx.get(wire), "the stop bit is low"
        found.append(value)
        limit = 20 * bit


DIVISOR = 16
BYTES = bytes((0x00, 0xFF, 0x55, 0xAA, 0x01, 0x80, 0x7F, 0xFE, 0xA5, 0x5A))


def test_divisor():
    assert uart_divisor(25_000_000, 115_200) == 217
    assert uart_divisor(25_000_000, 1_000_000) == 25
    with pytest.raises(ValueError, match=r"baud must be within 2% of the clock \(25000000 Hz\) .*, not 4000000$"):
        uart_divisor(25_000_000, 4_000_000)
    with pytest.raises(ValueError, match="baud must be .*, not 10000000$"):
        uart_divisor(25_000_000, 10_000_000)


@pytest.mark.parametrize(("divisor", "sender"), [(4, 4), (5, 5), (DIVISOR, DIVISOR), (32, 31), (32, 33)])
def test_every_byte_is_received(divisor, sender):
    """A sender's bits may be 3 % too long or too short, an error of a third of a bit at the end of a byte."""
    dut, found = UartReceiver(divisor), b""

    async def bench(ctx):
        await send(ctx, dut.wire, BYTES, sender)
        await ctx.tick().repeat(divisor)

    async def watch(ctx):
        nonlocal found
        while True:
            *_, valid, byte, broken = await ctx.tick().sample(dut.o.valid, dut.o.payload, dut.broken)
            assert not broken
            found += bytes([byte] * valid)

    simulate(dut, bench, background=[watch])
    assert found == BYTES


@simulated(lambda: UartReceiver(DIVISOR))
async def test_spikes_and_breaks_are_no_bytes(ctx, dut):
    seen = []

    async def hold(level, cycles):
        ctx.set(dut.wire, level)
        for _ in range(cycles):
            seen.append((await ctx.tick().sample(dut.o.valid, dut.broken))[2:])

    await hold(0, DIVISOR // 2 - 2)
    await hold(1, 20 * DIVISOR)
    assert not any(map(any, seen))
    await hold(0, 30 * DIVISOR)
    await hold(1, DIVISOR)
    assert [sample for sample in seen if any(sample)] == [(0, 1)]


@pytest.mark.parametrize("stall", [0, 0.5])
def test_every_byte_is_sent(stall):
    dut = UartTransmitter(DIVISOR)
    feed = partial(offer, stream=dut.i, payloads=BYTES, stall=stall, pace=random.Random(1))
    assert simulate(dut, partial(receive, wire=dut.wire, bit=DIVISOR), background=[feed]) == BYTES


@simulated(lambda: UartTransmitter(DIVISOR))
async def test_bytes_are_sent_back_to_back(ctx, dut):
    ctx.set(dut.i.valid, 1)
    taken = [cycle for cycle in range(40 * DIVISOR) if (await ctx.tick().sample(dut.i.ready))[-1]]
    assert taken == [0, 10 * DIVISOR, 20 * DIVISOR, 30 * DIVISOR]
