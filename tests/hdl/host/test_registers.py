from functools import partial
from itertools import product

from neuroncore_rtl.hdl.core_ports import core_counters
from neuroncore_rtl.hdl.host.registers import OUTPUT_BYTES, HostRegisters, layout_places
from neuroncore_rtl.spec import host_map as at
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.host_map import Effect, counter_offset, parameter_values
from neuroncore_rtl.spec.isa import Cause
from tests.hdl.queue.bus import on_bus
from tests.hdl.simulation import drive, flash, random_bits

CONFIG = PRESETS["tiny"]
COUNTERS = layout_places(core_counters(CONFIG))

RESET = {register.name: 0 for register in at.HOST_REGISTERS} | {
    "IDENTITY": int.from_bytes(b"RNCH", "little"),
    "VERSION": 0x10001,
    "PARAMETER_COUNT": len(parameter_values(CONFIG)),
}


registers = partial(HostRegisters, CONFIG)


def test_the_map_is_in_order_and_has_room():
    offsets = [register.offset for register in at.HOST_REGISTERS]
    assert offsets == [4 * number for number in range(len(offsets))]
    assert offsets[-1] < at.PARAMETER_WORDS
    assert at.PARAMETER_WORDS + 4 * len(parameter_values(CONFIG)) <= at.COUNTER_WORDS
    assert counter_offset(len(layout_places(core_counters(PRESETS["full"])))) < 1 << at.HOST_ADDRESS_BITS
    for register in at.HOST_REGISTERS:
        assert sum(field.mask for field in register.fields) in (0, register.mask)


@on_bus(registers)
async def test_there_is_a_register_where_the_map_says_and_nowhere_else(ctx, dut, manager):
    readable = {register.offset: RESET[register.name] for register in at.HOST_REGISTERS}
    readable |= {at.PARAMETER_WORDS + 4 * n: value for n, value in enumerate(parameter_values(CONFIG).values())}
    readable |= {counter_offset(n) + half: 0 for n in range(len(COUNTERS)) for half in (0, 4)}
    writable = {one.offset for one in at.HOST_REGISTERS if one.effect in (Effect.KEEP, Effect.DO, Effect.CLEAR)}
    block = 1 << at.HOST_ADDRESS_BITS
    words = {*range(0, 0x200, 4), *range(0x1FF0, counter_offset(len(COUNTERS)) + 16, 4), *range(0x200, block, 0x3C4)}
    words |= {block + word for word in (0, 8, 0x10)} | {1 << 31, block - 4, (1 << 32) - 4}
    for word in sorted(words):
        assert await manager.access(word) == readable.get(word, "error"), hex(word)
        assert manager.cycles == 1
        assert (await manager.access(word, 0) != "error") == (word in writable), hex(word)
        assert manager.cycles == 1
    for register, mask, data in product(at.HOST_REGISTERS, (0, 0b0001, 0b1100, 0b0111), (None, 0)):
        assert await manager.access(register.offset, data, mask) == "error"


@on_bus(registers)
async def test_registers_that_store_what_is_written(ctx, dut, manager, rng):
    kept = {register: 0 for register in at.HOST_REGISTERS if register.effect == Effect.KEEP}
    assert len(kept) == 3
    for _ in range(100):
        register = list(kept)[rng.integers(len(kept))]
        value = int(rng.integers(1 << int(rng.integers(1, 33))))
        fits = value & ~register.mask == 0
        assert await manager.access(register.offset, value) == (None if fits else "error")
        kept[register] = value if fits else kept[register]
        for other, expected in kept.items():
            assert await manager.access(other.offset) == expected
        assert ctx.get(dut.boot_address) == kept[at.BOOT_HIGH] << 32 | kept[at.BOOT_LOW]
    for register in at.HOST_REGISTERS:
        if register.effect in (Effect.READ, Effect.TAKE):
            assert await manager.access(register.offset, int(rng.integers(1 << 32))) == "error"


@on_bus(registers)
async def test_requests_of_the_host_are_pulses(ctx, dut, manager):
    ports = {"START": dut.start, "RESET": dut.reset, "INTERRUPT": dut.host_interrupt}

    async def request(*names: str) -> list[str]:
        seen, bits = [], sum(map(at.HOST_CONTROL.bit, names))
        each = lambda: seen.append({name for name, port in ports.items() if ctx.get(port)})  # noqa: E731
        refused = await manager.access(at.HOST_CONTROL.offset, bits, each=each)
        assert not any(ctx.get(port) for port in ports.values()) and len(seen) == 1
        return None if refused else seen[0]

    status = at.STATUS.bit
    assert await request("INTERRUPT") == {"INTERRUPT"}
    assert await request("START", "RESET") is None
    assert await manager.access(at.STATUS.offset) == 0
    assert await request("START", "INTERRUPT") == {"START", "INTERRUPT"}
    assert await manager.access(at.STATUS.offset) == status("STARTED")
    assert await request("START") is None
    assert await request("RESET") == {"RESET"}
    assert await manager.access(at.HOST_CONTROL.offset, 0b1000) == "error"
    ctx.set(dut.resetting, 1)
    await ctx.tick()
    assert await manager.access(at.STATUS.offset) == status("RESET")
    assert await request("START") is None
    ctx.set(dut.resetting, 0)
    assert await request("START") == {"START"}


@on_bus(registers)
async def test_the_end_of_a_run(ctx, dut, manager, rng):
    for done in (1, 0):
        code, address = int(rng.integers(1 << 32)), int(rng.integers(1 << 40))
        error = {"valid": 1 - done, "queue": 4, "cause": int(Cause.AXI), "address": address, "detail": 1 << 31}
        for register in (at.INTERRUPT_STATUS, at.CYCLES_LOW):
            assert await manager.access(register.offset) == 0, "nothing is counted before a start"
        sources = at.INTERRUPT_STATUS.bit("DONE") | at.INTERRUPT_STATUS.bit("ERROR")
        await manager.access(at.HOST_INTERRUPT_ENABLE.offset, sources)
        await manager.access(at.HOST_CONTROL.offset, at.HOST_CONTROL.bit("START"))
        await ctx.tick().repeat(100)
        drive(ctx, dut, done=done, exit_code=code, error=error, quiet=1)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.interrupt)
        cycles = await manager.access(at.CYCLES_LOW.offset)
        assert 100 <= cycles <= 102 and await manager.access(at.CYCLES_HIGH.offset) == 0
        await ctx.tick().repeat(10)
        assert await manager.access(at.CYCLES_LOW.offset) == cycles
        which = "DONE" if done else "ERROR"
        wanted = {at.STATUS: sum(map(at.STATUS.bit, ("STARTED", which, "QUIET"))), at.EXIT_CODE: code}
        wanted |= {at.HOST_ERROR_CAUSE: int(Cause.AXI), at.HOST_ERROR_QUEUE: 4, at.HOST_ERROR_DETAIL: 1 << 31}
        wanted |= {at.HOST_ERROR_LOW: address & 0xFFFF_FFFF, at.HOST_ERROR_HIGH: address >> 32}
        assert {register: await manager.access(register.offset) for register in wanted} == wanted

        bit = at.INTERRUPT_STATUS.bit(which)
        assert await manager.access(at.INTERRUPT_STATUS.offset) == bit
        await manager.access(at.INTERRUPT_STATUS.offset, sources ^ bit)
        assert await manager.access(at.INTERRUPT_STATUS.offset) == bit and ctx.get(dut.interrupt)
        await manager.access(at.INTERRUPT_STATUS.offset, bit)
        assert await manager.access(at.INTERRUPT_STATUS.offset) == 0 and not ctx.get(dut.interrupt)

        drive(ctx, dut, resetting=1, done=0, error={"valid": 0}, quiet=0)
        await ctx.tick().repeat(2)
        ctx.set(dut.resetting, 0)
        assert await manager.access(at.HOST_INTERRUPT_ENABLE.offset) == sources


@on_bus(registers)
async def test_an_interrupt_stays_pending_until_it_is_enabled(ctx, dut, manager):
    ctx.set(dut.done, 1)
    await ctx.tick().repeat(5)
    assert not ctx.get(dut.interrupt)
    await manager.access(at.HOST_INTERRUPT_ENABLE.offset, at.HOST_INTERRUPT_ENABLE.bit("DONE"))
    await ctx.tick().repeat(2)
    assert ctx.get(dut.interrupt)


@on_bus(registers)
async def test_output_in_order_and_lost_bytes(ctx, dut, manager):
    async def print_bytes(count: int) -> None:
        for byte in range(count):
            await flash(ctx, dut.console, byte)

    valid, lost = (at.OUTPUT.bit(name) for name in ("VALID", "LOST"))
    await print_bytes(OUTPUT_BYTES)
    await ctx.tick().repeat(2)
    assert await manager.access(at.INTERRUPT_STATUS.offset) == at.INTERRUPT_STATUS.bit("OUTPUT")
    assert [await manager.access(at.OUTPUT.offset) for _ in range(5)] == [valid | byte for byte in range(5)]
    await print_bytes(7)
    assert await manager.access(at.OUTPUT.offset) == valid | lost | 5
    rest = [valid | byte for byte in (*range(6, OUTPUT_BYTES), *range(5))]
    assert [await manager.access(at.OUTPUT.offset) for _ in range(OUTPUT_BYTES)] == [*rest, 0]
    await print_bytes(3)
    ctx.set(dut.resetting, 1)
    await ctx.tick().repeat(4)
    ctx.set(dut.resetting, 0)
    await ctx.tick().repeat(2)
    assert await manager.access(at.OUTPUT.offset) == 0


@on_bus(registers)
async def test_the_upper_half_of_a_counter_is_latched_when_the_lower_is_read(ctx, dut, manager, rng):
    assert len(COUNTERS) > 30 and all(width > 32 for _, _, width in COUNTERS)
    counters, values = dut.counters.as_value(), [random_bits(rng, width) | 1 << width - 1 for *_, width in COUNTERS]
    for value, (_, first, width) in zip(values, COUNTERS, strict=True):
        ctx.set(counters[first : first + width], value)
    for number in rng.permutation(len(COUNTERS)).tolist():
        name, first, width = COUNTERS[number]
        low = await manager.access(counter_offset(number))
        ctx.set(counters[first : first + width], 0)
        assert low | await manager.access(counter_offset(number) + 4) << 32 == values[number], name
