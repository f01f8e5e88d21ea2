"""Cocotb tests of the AXI4-Lite registers of the host (`tb/tests/core/axi_lite.py`)."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, Combine, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from neuroncore_rtl.spec import host_map as at
from neuroncore_rtl.spec.host_map import Effect
from neuroncore_rtl.tb.tests.core.axi_tests import SETTINGS, pause, start

INPUTS = ("resetting", "done", "exit_code", "error", "quiet", "console__valid", "console__payload", "counters")


async def begin(dut) -> Any:
    """Reset the bench and return an `AxiLiteMaster`."""
    for name in INPUTS:
        getattr(dut, f"host__{name}").value = 0
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_"), dut.clk, dut.rst)
    pause(master)
    await start(dut)
    return master


async def read(master: Any, offset: int) -> int | None:
    """Return a word; None if the access is refused."""
    answer = await master.read(offset, 4)
    assert answer.resp in (AxiResp.OKAY, AxiResp.SLVERR)
    word = int.from_bytes(answer.data, "little")
    assert answer.resp == AxiResp.OKAY or word == 0
    return word if answer.resp == AxiResp.OKAY else None


async def write(master: Any, offset: int, word: int, size: int = 4) -> bool:
    """Write a word, or its lowest `size` bytes; return whether the access was accepted."""
    answer = await master.write(offset, word.to_bytes(4, "little")[:size])
    assert answer.resp in (AxiResp.OKAY, AxiResp.SLVERR)
    return answer.resp == AxiResp.OKAY


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_register(dut):
    """All mapped registers answer; unmapped addresses and partial words are refused."""
    master, rng = await begin(dut), random.Random(SETTINGS["seed"])
    there = dict(SETTINGS["there"])
    unknown = [rng.randrange(0, 1 << at.HOST_ADDRESS_BITS, 4) for _ in range(30)]
    for offset in [*there, *unknown, at.HOST_REGISTERS[-1].offset + 4, (1 << at.HOST_ADDRESS_BITS) - 4]:
        assert await read(master, offset) == there.get(offset), hex(offset)
    writable = {one.offset: one for one in at.HOST_REGISTERS if one.effect not in (Effect.READ, Effect.TAKE)}
    for offset in [*there, *unknown]:
        assert await write(master, offset, 0) == (offset in writable)
    for register in writable.values():
        whole = rng.getrandbits(32) & register.mask if register.effect == Effect.KEEP else 0
        assert await write(master, register.offset, whole)
        for size in (1, 2, 3):
            assert not await write(master, register.offset, ~whole & register.mask, size)
            assert not await write(master, register.offset + 4 - size, ~whole & register.mask, size)
        if register.mask >> 32 - 1 == 0:
            assert not await write(master, register.offset, register.mask + 1)
        assert await read(master, register.offset) == whole
    low, high = await read(master, at.BOOT_LOW.offset), await read(master, at.BOOT_HIGH.offset)
    assert low is not None and high is not None
    assert int(dut.host__boot_address.value) == low + (high << 32)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def addresses_that_are_no_multiples(dut):
    """The manager aligns addresses, so this test drives its channels directly."""
    master = await begin(dut)
    kept = at.HOST_INTERRUPT_ENABLE.offset
    assert await write(master, kept, 0b101)
    writes, reads = master.write_if, master.read_if
    for low in (1, 2, 3):
        await writes.aw_channel.send(writes.aw_channel._transaction_obj(awaddr=kept + low, awprot=0))
        await writes.w_channel.send(writes.w_channel._transaction_obj(wdata=0b010, wstrb=0b1111))
        assert (await writes.b_channel.recv()).bresp == AxiResp.SLVERR
        await reads.ar_channel.send(reads.ar_channel._transaction_obj(araddr=kept + low, arprot=0))
        answer = await reads.r_channel.recv()
        assert answer.rresp == AxiResp.SLVERR and int(answer.rdata) == 0
        assert await read(master, kept) == 0b101


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reads_beside_writes(dut):
    """Each of several reads and writes in flight gets its own answer."""
    master, rng = await begin(dut), random.Random(SETTINGS["seed"])

    async def readers():
        for _ in range(100):
            assert await read(master, at.IDENTITY.offset) == at.HOST_MAGIC
            assert await read(master, at.CYCLES_HIGH.offset) == 0

    async def writers():
        for _ in range(100):
            word = rng.getrandbits(32)
            assert await write(master, at.BOOT_LOW.offset, word)
            assert int(dut.host__boot_address.value) == word
            assert not await write(master, at.VERSION.offset, word)

    await Combine(cocotb.start_soon(readers()), cocotb.start_soon(writers()))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_a_run(dut):
    """A reset by the host keeps its registers; a reset by the board during an access clears them."""
    master = await begin(dut)
    status = at.STATUS.bit
    assert await write(master, at.BOOT_LOW.offset, 0x1280)
    assert await write(master, at.HOST_INTERRUPT_ENABLE.offset, at.HOST_INTERRUPT_ENABLE.bit("DONE"))
    assert await write(master, at.HOST_CONTROL.offset, at.HOST_CONTROL.bit("START"))
    await ClockCycles(dut.clk, 50)
    dut.host__done.value = 1
    await RisingEdge(dut.host__interrupt)
    assert await read(master, at.STATUS.offset) == status("STARTED") | status("DONE")
    cycles_low = await read(master, at.CYCLES_LOW.offset)
    assert cycles_low is not None and cycles_low >= 50
    assert not await write(master, at.HOST_CONTROL.offset, at.HOST_CONTROL.bit("START"))
    asked = cocotb.start_soon(write(master, at.HOST_CONTROL.offset, at.HOST_CONTROL.bit("RESET")))
    await RisingEdge(dut.host__reset)
    await RisingEdge(dut.clk)
    dut.host__resetting.value = 1
    dut.host__done.value = 0
    assert await asked
    assert await read(master, at.STATUS.offset) == status("RESET")
    dut.host__resetting.value = 0
    for register in (at.STATUS, at.CYCLES_LOW, at.INTERRUPT_STATUS):
        assert await read(master, register.offset) == 0
    assert await read(master, at.BOOT_LOW.offset) == 0x1280
    assert await write(master, at.HOST_CONTROL.offset, at.HOST_CONTROL.bit("START"))

    for cycles in range(1, 8):
        assert await write(master, at.BOOT_LOW.offset, 0x1280)
        cut = cocotb.start_soon(master.read(at.BOOT_LOW.offset, 4))
        await ClockCycles(dut.clk, cycles)
        dut.rst.value = 1
        await ClockCycles(dut.clk, 2)
        dut.rst.value = 0
        await cut
        assert await read(master, at.STATUS.offset) == 0
        assert await read(master, at.BOOT_LOW.offset) == 0
