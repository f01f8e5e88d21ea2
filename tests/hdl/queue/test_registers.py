# amaranth: UnusedElaboratable=no

"""Every register of the map: what it reads, what writing does, and what is refused."""

import pytest
from amaranth import Module
from amaranth.lib import wiring

from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.spec import memory_map as at
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, queue_count
from tests.hdl.queue.bus import Asker
from tests.hdl.simulation import simulate

SEED = 1961

CONFIG = PRESETS["tiny"]
QUEUES = queue_count(CONFIG)

RESET = {
    at.INTERRUPT_PENDING: 0, at.INTERRUPT_ENABLE: 0, at.WATCH_SEMAPHORE: 0, at.WATCH_VALUE: 0xFFFF,
    at.WATCHDOG_LIMIT: 100_000, at.ERROR_CAUSE: 0, at.ERROR_QUEUE: 0, at.ERROR_LOW: 0, at.ERROR_HIGH: 0,
    at.ERROR_DETAIL: 0, at.CORE_NUMBER: 0, at.CORE_COUNT: 1,
}  # fmt: skip
"""Readable registers that there are once, and what they are after reset."""

WIDTHS = {at.INTERRUPT_ENABLE: 3, at.WATCH_SEMAPHORE: 8, at.WATCH_VALUE: 16, at.WATCHDOG_LIMIT: 32}
"""Those that keep what is written, and how many bits of it."""

CHANGES = (at.SEMAPHORES, at.SEMAPHORE_ADD, at.SEMAPHORE_SUBTRACT)
"""Where a semaphore is set or changed by writing."""


def queue_register(queue, offset):
    return at.QUEUES + queue * at.QUEUE_STRIDE + offset


def counter(queue, number):
    return at.COUNTERS + queue * at.COUNTER_STRIDE + 4 * number


def play(bench, semaphores=False, config=CONFIG):
    """Run a bench(ctx, registers, asker), with semaphores behind the registers if they are wanted."""
    dut = Registers(config)
    m = Module()
    m.submodules.dut = dut
    others = Semaphores(1)
    if semaphores:
        m.submodules.semaphores = others
        wiring.connect(m, dut.semaphore, others.access)
        m.d.comb += [
            others.watch_semaphore.eq(dut.watch_semaphore),
            others.watch_value.eq(dut.watch_value),
            dut.watch_reached.eq(others.watch_reached),
        ]

    async def run(ctx):
        if semaphores:
            await ctx.tick().repeat(Semaphores.SWEEP)
        await bench(ctx, dut, Asker(ctx, dut.bus))

    simulate(m, run)


def test_there_is_a_register_where_the_map_says_and_nowhere_else():
    """Reads and writes of 0 to every word around the registers are answered at once, or refused."""
    offsets = (at.QUEUE_LOW, at.QUEUE_HIGH, at.QUEUE_PLACES, at.QUEUE_RETIRED, at.QUEUE_COUNT)
    readable = {queue_register(q, offset) for q in range(QUEUES) for offset in offsets}
    readable |= {counter(q, n) for q in range(QUEUES) for n in range(len(QUEUE_COUNTERS))} | set(RESET)
    offsets = (at.QUEUE_LOW, at.QUEUE_HIGH, at.QUEUE_START)
    writable = {queue_register(q, offset) for q in range(QUEUES) for offset in offsets}
    writable |= {at.EXIT, at.CONSOLE, at.INTERRUPT_PENDING, *WIDTHS}
    readable |= {at.SEMAPHORES + 4 * n for n in range(256)}
    writable |= {first + 4 * n for first in CHANGES for n in range(256)}
    edges = {word for address in readable | writable for word in (address - 4, address + 4)}
    ranges = [range(0, 0x400, 4), range(0xFF8, 0x1010, 4), range(0x13F0, 0x1410, 4), range(0x17F0, 0x1810, 4)]
    ranges += [range(0x1BF0, 0x1C10, 4), range(0x1FF0, 0x2100, 4), range(0x3FF0, 0x4200, 4), [0x4C0, 0x8000, 0xFFFC]]
    words = {at.REGISTERS + offset for some in ranges for offset in some}
    words |= {word for word in edges if not at.SEMAPHORES <= word < at.SEMAPHORES + 0xC00}
    words |= {word + (1 << 16) for word in sorted(readable)[::40]} | {at.REGISTERS - 4, at.EXIT ^ 1 << 31}

    async def bench(ctx, dut, asker):
        ctx.set(dut.semaphore.ready, 1)
        for blocks in dut.blocks:
            ctx.set(blocks.ready, 1)
        for word in sorted(words):
            assert (await asker.access(word) != "error") == (word in readable), hex(word)
            assert asker.cycles == 1
            assert (await asker.access(word, 0) != "error") == (word in writable), hex(word)
            assert asker.cycles == 1
            for mask in (0b0001, 0b1100, 0b0111):
                if word in list(RESET)[::3]:
                    assert await asker.access(word, mask=mask) == "error"
                    assert await asker.access(word, 0, mask=mask) == "error"

    play(bench)


def test_the_ones_that_keep_what_is_written(rng):
    async def bench(ctx, dut, asker):
        outputs = {
            at.WATCH_SEMAPHORE: dut.watch_semaphore,
            at.WATCH_VALUE: dut.watch_value,
            at.WATCHDOG_LIMIT: dut.watchdog_limit,
        }
        for address, value in RESET.items():
            assert await asker.access(address) == value
        kept = dict(RESET)
        for _ in range(200):
            address = int(rng.choice(list(WIDTHS)))
            value = int(rng.integers(1 << int(rng.integers(1, 33))))
            answer = await asker.access(address, value)
            assert answer == ("error" if value >> WIDTHS[address] else None)
            if answer is None:
                kept[address] = value
            for other in WIDTHS:
                assert await asker.access(other) == kept[other]
                assert other not in outputs or ctx.get(outputs[other]) == kept[other]
        assert await asker.access(at.ERROR_CAUSE, 0) == "error"

    play(bench)


def test_doorbells_ring_at_their_queue_with_its_own_address(rng):
    async def bench(ctx, dut, asker):
        kept = {q: [0, 0] for q in range(QUEUES)}
        rung = 0
        for q in range(QUEUES):  # what memories hold after reset does not matter
            await asker.access(queue_register(q, at.QUEUE_LOW), 0)
            await asker.access(queue_register(q, at.QUEUE_HIGH), 0)
        for _ in range(150):
            q, half = int(rng.integers(QUEUES)), int(rng.integers(2))
            offset = (at.QUEUE_LOW, at.QUEUE_HIGH)[half]
            value = int(rng.integers(1 << 32)) & int(rng.choice((-1, -128, 0xFF)))
            wrong = value % 128 if half == 0 else value >> 8
            assert await asker.access(queue_register(q, offset), value) == ("error" if wrong else None)
            if not wrong:
                kept[q][half] = value
            for other in range(QUEUES):
                assert await asker.access(queue_register(other, at.QUEUE_LOW)) == kept[other][0]
                assert await asker.access(queue_register(other, at.QUEUE_HIGH)) == kept[other][1]

            q, count = int(rng.integers(QUEUES)), int(rng.integers(1 << 17))
            wait = int(rng.integers(4))
            seen = []

            def each(q=q, count=count, wait=wait, seen=seen):
                for number, blocks in enumerate(dut.blocks):
                    ctx.set(blocks.ready, len(seen) == wait if number == q else 1)
                    assert ctx.get(blocks.valid) == (number == q and count < 1 << 16)
                seen.append((ctx.get(dut.blocks[q].payload.address), ctx.get(dut.blocks[q].payload.count)))

            if count >= 1 << 16:
                assert await asker.access(queue_register(q, at.QUEUE_START), count, each=each) == "error"
            else:
                assert await asker.access(queue_register(q, at.QUEUE_START), count, each=each) is None
                assert seen == [(kept[q][1] << 32 | kept[q][0], count)] * (wait + 1)
                rung += 1
        assert rung > 50

    play(bench)


def test_what_queues_and_errors_report_is_read(rng):
    async def bench(ctx, dut, asker):
        wanted = {}
        for q in range(QUEUES):
            places, retired, rung = (int(rng.integers(limit)) for limit in (5, 1 << 32, 1 << 32))
            ctx.set(dut.places[q], places)
            ctx.set(dut.retired_count[q], retired)
            ctx.set(dut.rung[q], rung)
            wanted[queue_register(q, at.QUEUE_PLACES)] = places
            wanted[queue_register(q, at.QUEUE_RETIRED)] = retired
            wanted[queue_register(q, at.QUEUE_COUNT)] = rung
            counts = {name: int(rng.integers(1 << 48)) for name in QUEUE_COUNTERS}
            ctx.set(dut.counters[q], counts)
            wanted |= {counter(q, n): counts[name] % (1 << 32) for n, name in enumerate(QUEUE_COUNTERS)}
        error = {"valid": 1, "queue": 4, "cause": 35, "address": 0xA9_8765_4300, "detail": 0xFEDC_BA98}
        ctx.set(dut.error, error)
        wanted |= {at.ERROR_CAUSE: 35, at.ERROR_QUEUE: 4, at.ERROR_LOW: 0x8765_4300, at.ERROR_HIGH: 0xA9}
        wanted |= {at.ERROR_DETAIL: 0xFEDC_BA98, at.INTERRUPT_PENDING: at.INTERRUPT_ERROR}
        for address, value in wanted.items():
            assert await asker.access(address) == value, hex(address)
            assert await asker.access(address, value) == ("error" if address != at.INTERRUPT_PENDING else None)

    play(bench)


def test_exit_and_console():
    async def bench(ctx, dut, asker):
        printed = []
        await ctx.tick()
        assert not ctx.get(dut.exit_valid)
        for byte in b"Hi\xff":
            assert await asker.access(at.CONSOLE, byte) is None
            assert ctx.get(dut.console.valid)
            printed.append(ctx.get(dut.console.payload))
            await ctx.tick()
            assert not ctx.get(dut.console.valid)
        assert await asker.access(at.CONSOLE, 0x100) == "error"
        assert not ctx.get(dut.console.valid) and bytes(printed) == b"Hi\xff"
        for code in (0x8000_0007, 0):
            assert await asker.access(at.EXIT, code) is None
            assert ctx.get(dut.exit_valid) and ctx.get(dut.exit_code) == 0x8000_0007

    play(bench)


def test_semaphores_are_read_set_and_changed(rng):
    values = [0] * 256

    async def bench(ctx, dut, asker):
        for _ in range(400):
            n, first = int(rng.choice((0, 9, 255))), int(rng.choice(CHANGES))
            value = int(rng.choice((0, 1, 500, 65535, 65536, 1 << 31)))
            new = dict(zip(CHANGES, (value, values[n] + value, values[n] - value), strict=True))[first]
            refused = value > 65535 or not 0 <= new <= 65535
            assert await asker.access(first + 4 * n, value) == ("error" if refused else None)
            values[n] = values[n] if refused else new
            assert await asker.access(at.SEMAPHORES + 4 * n) == values[n]
        assert len(set(values)) > 2

    play(bench, semaphores=True)


def test_interrupts():
    async def bench(ctx, dut, asker):
        async def settled():
            await ctx.tick().repeat(2)
            return ctx.get(dut.external_interrupt)

        async def host():
            ctx.set(dut.host_interrupt, 1)
            await ctx.tick()
            ctx.set(dut.host_interrupt, 0)

        # The host's stays until it is taken back, and only that bit does it.
        await host()
        assert not await settled()
        assert await asker.access(at.INTERRUPT_PENDING) == at.INTERRUPT_HOST
        await asker.access(at.INTERRUPT_ENABLE, at.INTERRUPT_ERROR | at.INTERRUPT_SEMAPHORE)
        assert not await settled()
        await asker.access(at.INTERRUPT_ENABLE, at.INTERRUPT_HOST)
        assert await settled()
        await asker.access(at.INTERRUPT_PENDING, at.INTERRUPT_ERROR | at.INTERRUPT_SEMAPHORE)
        assert await settled()
        await asker.access(at.INTERRUPT_PENDING, at.INTERRUPT_HOST)
        assert not await settled() and await asker.access(at.INTERRUPT_PENDING) == 0
        # One that comes in the cycle in which the one before is taken back is not lost.
        await host()
        await asker.access(at.INTERRUPT_PENDING, at.INTERRUPT_HOST, each=lambda: ctx.set(dut.host_interrupt, 1))
        ctx.set(dut.host_interrupt, 0)
        assert await settled()
        await asker.access(at.INTERRUPT_PENDING, at.INTERRUPT_HOST)
        # The semaphore's follows its value.
        await asker.access(at.INTERRUPT_ENABLE, at.INTERRUPT_SEMAPHORE)
        await asker.access(at.WATCH_SEMAPHORE, 17)
        await asker.access(at.WATCH_VALUE, 3)
        for value in (2, 3, 9, 0, 65535):
            await asker.access(at.SEMAPHORES + 4 * 17, value)
            assert await settled() == (value >= 3)
            assert await asker.access(at.INTERRUPT_PENDING) == at.INTERRUPT_SEMAPHORE * (value >= 3)
        await asker.access(at.INTERRUPT_ENABLE, at.INTERRUPT_ERROR)
        assert not await settled()
        ctx.set(dut.error.valid, 1)
        assert await settled()

    play(bench, semaphores=True)


def test_a_request_is_taken_with_each_response():
    """Reads come one a cycle."""

    async def bench(ctx, dut, asker):
        for q in range(QUEUES):
            ctx.set(dut.rung[q], 100 + q)
        ctx.set(dut.bus.valid, 1)
        ctx.set(dut.bus.mask, 0xF)
        results = []
        for q in range(QUEUES):
            ctx.set(dut.bus.address, queue_register(q, at.QUEUE_COUNT))
            assert ctx.get(dut.bus.ready)
            await ctx.tick()
            assert ctx.get(dut.bus.response)
            results.append(ctx.get(dut.bus.result))
        assert results == [100 + q for q in range(QUEUES)]

    play(bench)


@pytest.mark.parametrize(("number", "count"), [(0, 4), (17, 32), (127, 128)])
def test_a_core_of_an_instance_knows_its_number_and_how_many_there_are(number, count):
    """It has a queue more, and nothing behind it."""
    config = CONFIG.with_overrides(cores=count)

    async def bench(ctx, dut, asker):
        ctx.set(dut.core_number, number)
        assert await asker.access(at.CORE_NUMBER) == number
        assert await asker.access(at.CORE_COUNT) == count
        for address in (at.CORE_NUMBER, at.CORE_COUNT):
            assert await asker.access(address, 0) == "error"
        assert len(dut.blocks) == QUEUES + 1
        ctx.set(dut.retired_count[QUEUES], 44)
        assert await asker.access(queue_register(QUEUES, at.QUEUE_RETIRED)) == 44
        assert await asker.access(queue_register(QUEUES + 1, at.QUEUE_RETIRED)) == "error"
        assert await asker.access(counter(QUEUES, 0)) == 0
        assert await asker.access(counter(QUEUES + 1, 0)) == "error"

    play(bench, config=config)
