from neuroncore_rtl.hdl.board.registers import BoardRegisters
from neuroncore_rtl.spec import host_link
from neuroncore_rtl.spec.host_link import CONSOLE_BYTES, BoardRegister, BoardStatus
from tests.hdl.queue.bus import on_bus
from tests.hdl.simulation import drive, flash

MACHINE = 0x00200408


@on_bus(lambda: BoardRegisters(MACHINE))
async def test_the_state_of_the_core_is_read(ctx, dut, manager):
    error = {"valid": 1, "queue": 3, "cause": 0x21, "address": 0x123456, "detail": 0x42}
    drive(ctx, dut, memory_ready=1, done=1, exit_code=0xDEADBEEF, error=error, quiet=0)
    wanted = {
        BoardRegister.IDENTITY: host_link.IDENTITY_WORD,
        BoardRegister.MACHINE: MACHINE,
        BoardRegister.STATUS: BoardStatus.READY | BoardStatus.DONE | BoardStatus.ERROR,
        BoardRegister.EXIT_CODE: 0xDEADBEEF,
        BoardRegister.ERROR: 0x321,
        BoardRegister.ERROR_ADDRESS: 0x123456,
        BoardRegister.ERROR_DETAIL: 0x42,
    }
    assert {at: await manager.access(at) for at in wanted} == wanted


@on_bus(lambda: BoardRegisters(MACHINE))
async def test_start_and_reset(ctx, dut, manager):
    starts = []

    async def write(at, value):
        await manager.access(at, value, each=lambda: starts.append(ctx.get(dut.start)))
        for _ in range(5):
            starts.append(ctx.get(dut.start))
            await ctx.tick()

    await write(BoardRegister.BOOT_ADDRESS, 0x1000)
    assert ctx.get(dut.boot_address) == 0x1000 and not any(starts)
    await write(BoardRegister.CONTROL, host_link.CONTROL_START)
    assert sum(starts) == 1
    await ctx.tick().repeat(100)
    assert 100 <= await manager.access(BoardRegister.CYCLES) < 120
    ctx.set(dut.done, 1)
    ended = await manager.access(BoardRegister.CYCLES)
    await ctx.tick().repeat(20)
    assert ended <= await manager.access(BoardRegister.CYCLES) <= ended + 2
    await write(BoardRegister.CONTROL, host_link.CONTROL_RESET)
    assert ctx.get(dut.reset) and sum(starts) == 1
    assert await manager.access(BoardRegister.CYCLES) == 0
    await write(BoardRegister.CONTROL, 0)
    assert not ctx.get(dut.reset)


@on_bus(lambda: BoardRegisters(MACHINE))
async def test_console(ctx, dut, manager):
    printed = [n * 7 % 256 for n in range(CONSOLE_BYTES + 3)]
    for byte in printed:
        await flash(ctx, dut.console, byte)
    assert await manager.access(BoardRegister.CONSOLE_COUNT) == len(printed)
    for position in (0, 1, 255, CONSOLE_BYTES - 1):
        assert await manager.access(BoardRegister.CONSOLE + 4 * position) == printed[position]


@on_bus(lambda: BoardRegisters(MACHINE))
async def test_other_accesses_are_refused(ctx, dut, manager):
    for at in (0x2C, 0x100, BoardRegister.CONSOLE - 4, BoardRegister.CONSOLE + 4 * CONSOLE_BYTES):
        assert await manager.access(at) == "error"
        assert await manager.access(at, 1) == "error"
    assert await manager.access(BoardRegister.CONSOLE, 1) == "error"
