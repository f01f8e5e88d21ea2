from functools import partial
from itertools import product

import pytest

from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.spec import memory_map as at
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, UpdateOp, queue_count
from tests.hdl.queue.bus import on_bus
from tests.hdl.simulation import WARM_UP, drive, expect, simulated

SEED = 1961
CONFIG = PRESETS["tiny"]
QUEUES = queue_count(CONFIG)

RESET = {
    at.INTERRUPT_PENDING: 0, at.INTERRUPT_ENABLE: 0, at.WATCH_SEMAPHORE: 0, at.WATCH_VALUE: 0xFFFF,
    at.WATCHDOG_LIMIT: 100_000, at.ERROR_CAUSE: 0, at.ERROR_QUEUE: 0, at.ERROR_LOW: 0, at.ERROR_HIGH: 0,
    at.ERROR_DETAIL: 0, at.CORE_NUMBER: 0, at.CORE_COUNT: 1,
}  # fmt: skip
"""Readable registers that exist once, and their reset values."""

WIDTHS = {at.INTERRUPT_ENABLE: 3, at.WATCH_SEMAPHORE: 8, at.WATCH_VALUE: 16, at.WATCHDOG_LIMIT: 32}
"""Registers that store what is written, and their widths."""

CHANGES = (at.SEMAPHORES, at.SEMAPHORE_ADD, at.SEMAPHORE_SUBTRACT)
"""Offsets at which a write sets or changes a semaphore."""


def queue_register(queue, offset):
    return at.QUEUES + queue * at.QUEUE_STRIDE + offset


def counter(queue, number):
    return at.COUNTERS + queue * at.COUNTER_STRIDE + 4 * number


@on_bus(lambda: Registers(CONFIG))
async def test_there_is_a_register_where_the_map_says_and_nowhere_else(ctx, dut, manager):
    kept = (at.QUEUE_LOW, at.QUEUE_HIGH)
    reads, writes = (*kept, at.QUEUE_PLACES, at.QUEUE_RETIRED, at.QUEUE_COUNT), (*kept, at.QUEUE_START)
    readable = {queue_register(q, offset) for q in range(QUEUES) for offset in reads}
    readable |= {counter(q, n) for q in range(QUEUES) for n in range(len(QUEUE_COUNTERS))} | set(RESET)
    readable |= {at.SEMAPHORES + 4 * n for n in range(256)}
    writable = {queue_register(q, offset) for q in range(QUEUES) for offset in writes}
    writable |= {at.EXIT, at.CONSOLE, at.INTERRUPT_PENDING, *WIDTHS}
    writable |= {first + 4 * n for first in CHANGES for n in range(256)}
    edges = {word for address in readable | writable for word in (address - 4, address + 4)}
    ranges = ((0, 0x400), (0xFF8, 0x1010), (0x13F0, 0x1410), (0x17F0, 0x1810), (0x1BF0, 0x1C10), (0x1FF0, 0x2100))
    ranges += ((0x3FF0, 0x4200), (0x4C0, 0x4C4), (0x8000, 0x8004), (0xFFFC, 0x10000))
    words = {at.REGISTERS + offset for low, high in ranges for offset in range(low, high, 4)}
    words |= {word for word in edges if not at.SEMAPHORES <= word < at.SEMAPHORES + 0xC00}
    words |= {word + (1 << 16) for word in sorted(readable)[::40]} | {at.REGISTERS - 4, at.EXIT ^ 1 << 31}
    for port in (dut.semaphore, *dut.blocks):
        ctx.set(port.ready, 1)
    for word, (data, legal) in product(sorted(words), ((None, readable), (0, writable))):
        assert (await manager.access(word, data) != "error") == (word in legal), hex(word)
        assert manager.cycles == 1
    for word, mask in product(list(RESET)[::3], (0b0001, 0b1100, 0b0111, 0b1011, 0b1101, 0b1110)):
        assert await manager.access(word, mask=mask) == "error"
        assert await manager.access(word, 0, mask=mask) == "error"


@pytest.mark.parametrize("warm_up", [0, WARM_UP])
@on_bus(lambda: Registers(CONFIG))
async def test_registers_that_store_what_is_written(ctx, dut, manager, warm_up, rng):
    expect(ctx, dut, exit_valid=0, external_interrupt=0, **{"console.valid": 0, "bus.response": 0})
    outputs = {
        at.WATCH_SEMAPHORE: "watch_semaphore",
        at.WATCH_VALUE: "watch_value",
        at.WATCHDOG_LIMIT: "watchdog_limit",
    }
    kept = dict(RESET)
    for address, value in RESET.items():
        assert await manager.access(address) == value
    for _ in range(200):
        address, value = int(rng.choice(list(WIDTHS))), int(rng.integers(1 << int(rng.integers(1, 33))))
        fits = value >> WIDTHS[address] == 0
        assert await manager.access(address, value) == (None if fits else "error")
        kept[address] = value if fits else kept[address]
        for other in WIDTHS:
            assert await manager.access(other) == kept[other]
        expect(ctx, dut, **{name: kept[other] for other, name in outputs.items()})


@on_bus(lambda: Registers(CONFIG))
async def test_a_bit_outside_a_register_is_refused(ctx, dut, manager):
    widths = WIDTHS | {at.CONSOLE: 8, at.INTERRUPT_PENDING: 3}
    for address, bit in product(widths, range(32)):
        wanted = None if bit < widths[address] else "error"
        assert await manager.access(address, 1 << bit) == wanted, (hex(address), bit)


@on_bus(lambda: Registers(CONFIG))
async def test_doorbells_ring_at_their_queue_with_its_own_address(ctx, dut, manager, rng):
    kept = {queue_register(q, offset): 0 for q in range(QUEUES) for offset in (at.QUEUE_LOW, at.QUEUE_HIGH)}
    for register in kept:  # the memory contents after reset are undefined
        await manager.access(register, 0)
    rung = 0
    for _ in range(150):
        high = int(rng.integers(2))
        register = queue_register(int(rng.integers(QUEUES)), (at.QUEUE_LOW, at.QUEUE_HIGH)[high])
        value = int(rng.integers(1 << 32)) & int(rng.choice((-1, -128, 0xFF)))
        wrong = value >> 8 if high else value % 128
        assert await manager.access(register, value) == ("error" if wrong else None)
        kept[register] = kept[register] if wrong else value
        for other, value in kept.items():
            assert await manager.access(other) == value

        q, count, wait = (int(rng.integers(limit)) for limit in (QUEUES, 1 << 17, 4))
        seen = []

        def each(q=q, count=count, wait=wait, seen=seen):
            for number, blocks in enumerate(dut.blocks):
                ctx.set(blocks.ready, len(seen) == wait if number == q else 1)
                assert ctx.get(blocks.valid) == (number == q and count < 1 << 16)
            seen.append((ctx.get(dut.blocks[q].payload.address), ctx.get(dut.blocks[q].payload.count)))

        answer = await manager.access(queue_register(q, at.QUEUE_START), count, each=each)
        assert answer == ("error" if count >= 1 << 16 else None)
        if answer is None:
            address = kept[queue_register(q, at.QUEUE_HIGH)] << 32 | kept[queue_register(q, at.QUEUE_LOW)]
            assert seen == [(address, count)] * (wait + 1)
            rung += 1
    assert rung > 50


@on_bus(lambda: Registers(CONFIG))
async def test_what_queues_and_errors_report_is_read(ctx, dut, manager, rng):
    reports = (("places", at.QUEUE_PLACES, 5), ("retired_count", at.QUEUE_RETIRED, 1 << 32))
    reports += (("rung", at.QUEUE_COUNT, 1 << 32),)
    for number in range(8):
        core = 1 << number % len(dut.core_number)
        ctx.set(dut.core_number, core)
        wanted = {at.CORE_NUMBER: core}
        for q in range(QUEUES):
            for name, offset, limit in reports:
                wanted[queue_register(q, offset)] = int(rng.integers(limit))
                ctx.set(getattr(dut, name)[q], wanted[queue_register(q, offset)])
            counts = {name: int(rng.integers(1 << 48)) for name in QUEUE_COUNTERS}
            ctx.set(dut.counters[q], counts)
            wanted |= {counter(q, n): counts[name] % (1 << 32) for n, name in enumerate(QUEUE_COUNTERS)}
        error = {"valid": 1, "queue": int(rng.integers(8)), "cause": int(rng.integers(64))}
        error |= {"address": int(rng.integers(1 << 33)) << 7, "detail": int(rng.integers(1 << 32))}
        ctx.set(dut.error, error)
        wanted |= {at.ERROR_CAUSE: error["cause"], at.ERROR_QUEUE: error["queue"], at.ERROR_DETAIL: error["detail"]}
        wanted |= {at.ERROR_LOW: error["address"] % (1 << 32), at.ERROR_HIGH: error["address"] >> 32}
        wanted |= {at.INTERRUPT_PENDING: at.INTERRUPT_ERROR}
        for address, value in wanted.items():
            assert await manager.access(address) == value, hex(address)
            assert await manager.access(address, value) == ("error" if address != at.INTERRUPT_PENDING else None)


@pytest.mark.parametrize("port_latency", [0, 1])
@on_bus(lambda port_latency: Registers(CONFIG.with_overrides(port_latency=port_latency)))
async def test_an_access_to_a_semaphore_is_answered_when_it_is_taken(ctx, dut, manager, port_latency, rng):
    """The semaphores answer in the cycle of the grant, or one cycle later with registered ports."""
    port = dut.semaphore
    ops = dict(zip(CHANGES, (UpdateOp.SET, UpdateOp.ADD, UpdateOp.SUBTRACT), strict=True))
    for _ in range(300):
        first, writes = int(rng.choice(CHANGES)), rng.random() < 0.8
        n, wait = int(rng.integers(256)), int(rng.integers(4))
        value = int(rng.integers(1 << 16)) | (1 << int(rng.integers(16, 32))) * (rng.random() < 0.2)
        has, refused, seen = int(rng.integers(1 << 16)), int(rng.random() < 0.3), []
        legal = value < 1 << 16 if writes else first == at.SEMAPHORES

        def each(wait=wait, has=has, refused=refused, seen=seen, legal=legal, writes=writes):
            now, answers = (len(seen) == cycle for cycle in (wait, wait + port_latency))
            drive(ctx, port, ready=now, has=has if answers else 0xFFFF ^ has, refused=refused if answers else 1)
            assert ctx.get(port.valid) == (legal and len(seen) <= wait)
            update = ctx.get(port.update)
            seen.append((UpdateOp(update.op.value), update.semaphore, update.value * writes))

        answer = await manager.access(first + 4 * n, value if writes else None, each=each)
        assert answer == ("error" if not legal or refused else None if writes else has)
        if legal:
            wanted = (ops[first], n, value) if writes else (UpdateOp.NONE, n, 0)
            assert seen[: wait + 1] == [wanted] * (wait + 1)
            assert len(seen) == manager.cycles == wait + 1 + port_latency


@on_bus(lambda: Registers(CONFIG))
async def test_interrupts_are_enabled_by_cause_and_cleared_by_the_host(ctx, dut, manager, rng):
    """An interrupt in the cycle in which the previous one is cleared is not lost."""
    host = enabled = 0
    for _ in range(200):
        reached, error = (int(rng.random() < 0.4) for _ in range(2))
        ctx.set(dut.watch_reached, reached)
        ctx.set(dut.error.valid, error)
        bits, kind = int(rng.integers(8)), int(rng.integers(3))
        if kind == 0:
            enabled = bits
            await manager.access(at.INTERRUPT_ENABLE, bits)
        elif kind == 1:
            again = int(rng.random() < 0.3)
            host = again or (host and not bits & at.INTERRUPT_HOST)
            await manager.access(at.INTERRUPT_PENDING, bits, each=partial(drive, ctx, dut, host_interrupt=again))
            ctx.set(dut.host_interrupt, 0)
        elif rng.random() < 0.5:
            host = 1
            ctx.set(dut.host_interrupt, 1)
        await ctx.tick()
        ctx.set(dut.host_interrupt, 0)
        await ctx.tick()
        pending = at.INTERRUPT_HOST * bool(host) | at.INTERRUPT_SEMAPHORE * reached | at.INTERRUPT_ERROR * error
        assert ctx.get(dut.external_interrupt) == bool(pending & enabled)
        assert await manager.access(at.INTERRUPT_PENDING) == pending


@on_bus(lambda: Registers(CONFIG))
async def test_exit_and_console(ctx, dut, manager):
    await ctx.tick()
    for byte in b"Hi\xff":
        assert await manager.access(at.CONSOLE, byte) is None
        expect(ctx, dut.console, valid=1, payload=byte)
        await ctx.tick()
        assert not ctx.get(dut.console.valid)
    assert await manager.access(at.CONSOLE, 0x100) == "error"
    assert not ctx.get(dut.console.valid | dut.exit_valid)
    for code in (0x8000_0007, 0):
        assert await manager.access(at.EXIT, code) is None
        expect(ctx, dut, exit_valid=1, exit_code=0x8000_0007)


@simulated(lambda: Registers(CONFIG))
async def test_a_read_per_cycle(ctx, dut):
    for q in range(QUEUES):
        ctx.set(dut.rung[q], 100 + q)
    for q in range(QUEUES):
        drive(ctx, dut.bus, valid=1, mask=0xF, address=queue_register(q, at.QUEUE_COUNT))
        assert ctx.get(dut.bus.ready)
        await ctx.tick()
        expect(ctx, dut.bus, response=1, result=100 + q)


@pytest.mark.parametrize(("number", "count"), [(0, 4), (17, 32), (127, 128)])
@on_bus(lambda count: Registers(CONFIG.with_overrides(cores=count)))
async def test_a_core_of_an_instance_has_its_number_the_core_count_and_a_further_queue(
    ctx, dut, manager, number, count
):
    ctx.set(dut.core_number, number)
    assert len(dut.blocks) == QUEUES + 1
    ctx.set(dut.retired_count[QUEUES], 44)
    wanted = {at.CORE_NUMBER: number, at.CORE_COUNT: count}
    for queue, answers in ((QUEUES, (44, 0)), (QUEUES + 1, ("error", "error"))):
        wanted |= dict(zip((queue_register(queue, at.QUEUE_RETIRED), counter(queue, 0)), answers, strict=True))
    assert {address: await manager.access(address) for address in wanted} == wanted
    assert [await manager.access(address, 0) for address in (at.CORE_NUMBER, at.CORE_COUNT)] == ["error"] * 2
