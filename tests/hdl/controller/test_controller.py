import struct

from neuroncore_rtl.hdl.controller.controller import Controller
from neuroncore_rtl.spec.memory_map import EXIT, LOCAL_BASE, LOCAL_BYTES, REGISTERS, TIMER_COMPARE, TIMER_NOW
from tests.hdl.controller.programs import assemble
from tests.hdl.simulation import drive, flash, simulated

REPLY = 0x1234_5678


@simulated(Controller)
async def control(ctx, unit, program: str, limit: int = 2000, latency: int = 3):
    """Return the registers, the writes to the bus, and the number of cycles of waiting."""
    registers, written = {}, []
    for number, (word,) in enumerate(struct.iter_unpack("<I", assemble(program).bytes)):
        await flash(ctx, unit.load, {"number": number, "data": word})
    assert not ctx.get(unit.trace_valid)
    ctx.set(unit.run, 1)
    bus, responses, waited = unit.peripheral, set(), 0
    ctx.set(bus.ready, 1)
    for cycle in range(limit):
        ctx.set(bus.response, cycle in responses)
        if ctx.get(unit.trace_valid) and ctx.get(unit.trace_rd):
            registers[ctx.get(unit.trace_rd)] = ctx.get(unit.trace_value)
        if ctx.get(bus.valid):
            drive(ctx, bus, result=REPLY, error=ctx.get(bus.address) == REGISTERS + 0x100)
            responses.add(cycle + latency)
            if ctx.get(bus.write):
                written.append((ctx.get(bus.address), ctx.get(bus.data)))
                if ctx.get(bus.address) == EXIT:
                    return registers, written, waited
        waited += ctx.get(unit.waiting)
        await ctx.tick()
    raise AssertionError(f"the program did not end in {limit} cycles")


def test_memory_and_bus():
    registers, written, _ = control(
        f"""
        li x31, {EXIT}
        li x1, {LOCAL_BASE + LOCAL_BYTES - 4}
        li x2, 0x8899AABB
        sw x2, 0(x1); sb x31, 1(x1); lw x3, 0(x1)
        lw x4, 0(x31); lhu x5, 2(x31); lw x6, 0(x1)
        li x7, 0; lw x8, 0(x7)
        sw x2, 4(x31); sw x3, 8(x31)
        """
    )
    expected = 0x8899_00BB
    assert (registers[3], registers[6]) == (expected, expected)
    assert (registers[4], registers[5], registers[8]) == (REPLY, REPLY >> 16, REPLY)
    assert written == [(EXIT + 4, 0x8899AABB), (EXIT + 8, expected), (EXIT, 0)]


def test_a_quotient_waits_for_the_answer_to_a_load_before_it():
    """It is not computed again meanwhile, which would take longer than the limit."""
    program = f"li x31, {EXIT}; li x2, -100; li x3, 7; lw x4, 0(x31); div x5, x2, x3"
    registers, *_ = control(program, limit=80, latency=50)
    assert (registers[4], registers[5]) == (REPLY, -14 & 0xFFFF_FFFF)


def test_errors_of_the_bus_of_a_fetch_and_of_partial_accesses_to_the_timer():
    registers, *_ = control(
        f"""
        li x31, {EXIT}
        li x20, 1
        li x1, {REGISTERS + 0x100}; lw x2, 0(x1); lw x3, 4(x1)
        li x1, {TIMER_COMPARE}; sb x0, 0(x1); lbu x4, 0(x1)
        jalr x5, 0(x31)
handler: csrrs x21, mcause, x0; slli x20, x20, 4; or x20, x20, x21
        csrrs x21, mepc, x0; beq x21, x31, end
        addi x21, x21, 4; csrrw x0, mepc, x21; mret
        """
    )
    assert registers[20] == 0x1571
    assert (registers[3], registers[4]) == (REPLY, 0xFF)
    assert 2 not in registers


def test_the_timer_interrupts_wakes_wfi_and_can_be_set_and_read():
    registers, written, waited = control(
        f"""
        li x31, {EXIT}
        li x1, 0x80; csrrw x0, mie, x1
        li x1, {TIMER_NOW}; li x2, {TIMER_COMPARE}
        lw x3, 4(x2); lw x4, 0(x1); csrrs x5, time, x0
        addi x6, x4, 200; sw x0, 4(x2); sw x6, 0(x2)
        csrrsi x0, mstatus, 8; csrrs x11, time, x0; wfi
handler: csrrs x7, mcause, x0; csrrs x8, time, x0
        sw x0, 0(x1); sw x31, 4(x1); csrrs x9, time, x0; csrrs x10, timeh, x0
        """
    )
    assert written == [(EXIT, 0)]
    assert (registers[3], registers[7]) == (0xFFFF_FFFF, 0x8000_0007)
    assert 0 < registers[5] - registers[4] < 6
    assert 0 <= registers[8] - registers[6] < 12
    assert waited == registers[6] - registers[11] - 1
    assert registers[9] < 8 and registers[10] == EXIT
