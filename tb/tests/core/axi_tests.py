"""Cocotb tests of the benches of `tb/tests/core/axi.py`."""

import json
import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiRam, AxiResp

from neuroncore_rtl.run.sim.clock import PERIOD_NS
from neuroncore_rtl.spec.isa import RECORD_BYTES
from neuroncore_rtl.spec.memory_map import LOCAL_BYTES

SETTINGS = json.loads(os.environ.get("SETTINGS", "{}"))


async def start(dut) -> None:
    """Start the clock and reset the design."""
    Clock(dut.clk, PERIOD_NS, unit="ns").start()
    dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 2)


def pause(model: Any) -> None:
    """Add random pauses to the channels of an `AxiMaster` or `AxiRam`."""
    write, read = model.write_if, model.read_if
    channels = (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel)
    for number, channel in enumerate(channels if SETTINGS["pause"] else ()):
        rng = random.Random(f"{SETTINGS['seed']} {number}")
        channel.set_pause_generator(iter(lambda rng=rng: rng.random() < SETTINGS["pause"], None))


def managers_of(dut) -> list[Any]:
    """Return an `AxiMaster` for every manager of `HbmBench`."""
    prefixes = (f"managers__{number}_" for number in range(SETTINGS["managers"]))
    masters = [
        AxiMaster(AxiBus.from_prefix(dut, p), dut.clk, dut.rst, max_burst_len=SETTINGS["max_beats"]) for p in prefixes
    ]
    for master in masters:
        pause(master)
    return masters


async def exercise(master: Any, memory: bytearray, first: int, rng: random.Random) -> None:
    """Write and read one manager's part of the memory; update `memory`."""
    size, beat = SETTINGS["part"], SETTINGS["beat"]
    for _ in range(SETTINGS["rounds"]):
        cuts = sorted({0, size, *(rng.randrange(0, size, beat) for _ in range(SETTINGS["places"]))})
        jobs = []
        for low, high in pairwise(cuts):
            length = rng.choice((high - low, rng.randint(1, high - low)))
            if rng.random() < 0.5:
                data = rng.randbytes(length)
                memory[first + low : first + low + length] = data
                jobs.append((None, cocotb.start_soon(master.write(first + low, data, awid=0))))
            else:
                jobs.append((low, cocotb.start_soon(master.read(first + low, length, arid=0))))
        for low, job in jobs:
            answer = await job
            assert answer.resp == AxiResp.OKAY
            if low is not None:
                assert answer.data == memory[first + low : first + low + len(answer.data)], f"read at {first + low:#x}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def managers_read_what_they_wrote(dut):
    """Every manager uses a separate part of the memory; the dumped file has all of them."""
    dut.dump.value = 0
    masters = managers_of(dut)
    await start(dut)
    memory = bytearray(Path(SETTINGS["content"]).read_bytes())
    rng = random.Random(SETTINGS["seed"])
    jobs = [
        cocotb.start_soon(exercise(master, memory, number * SETTINGS["part"], random.Random(rng.random())))
        for number, master in enumerate(masters)
    ]
    for job in jobs:
        await job
    await ClockCycles(dut.clk, 2)
    assert dut.idle.value == 1
    dut.dump.value = 1
    await ClockCycles(dut.clk, 1)
    dut.dump.value = 0
    await ClockCycles(dut.clk, 1)
    Path(SETTINGS["expected"]).write_bytes(memory)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def errors_are_answered(dut):
    """A burst into an error range returns the error, and does not change the range."""
    dut.dump.value = 0
    master = managers_of(dut)[0]
    await start(dut)
    for error in (AxiResp.SLVERR, AxiResp.DECERR):
        low, high = SETTINGS[error.name.lower()]
        before, beat = bytes(range(1, 65)), SETTINGS["beat"]
        for address, length, expected in (
            (low - 64, 64, AxiResp.OKAY),
            (low - beat, 2 * beat, error),
            (high - beat, 1, error),
            (high, 64, AxiResp.OKAY if high < SETTINGS["size"] else error),
        ):
            data = (before * length)[:length]
            assert (await master.write(address, data, awid=0)).resp == expected, hex(address)
            got = await master.read(address, length, arid=0)
            assert got.resp == expected, hex(address)
            assert (got.data == data) == (expected == AxiResp.OKAY), hex(address)
        assert (await master.read(low - beat, beat, arid=0)).data == before[:beat]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def timing(dut):
    """Record the cycles of manager 0's addresses, beats and responses, without an AXI model in between."""
    bursts, length, beat = SETTINGS["bursts"], SETTINGS["length"], SETTINGS["beat"]
    events = {channel: [] for channel in ("aw", "w", "b", "ar", "r")}
    for number in range(SETTINGS["managers"]):
        port = Signals(dut, f"managers__{number}")
        for name in ("awvalid", "wvalid", "arvalid", "awid", "arid", "wdata"):
            port.set(name, 0)
        port.set("bready", 1)
        port.set("rready", 1)
    dut.dump.value = 0
    await start(dut)
    port = Signals(dut, "managers__0")
    left = {"aw": bursts, "w": bursts * length, "ar": bursts}
    for name in ("awlen", "arlen"):
        port.set(name, length - 1)
    port.set("wstrb", (1 << beat) - 1)
    for cycle in range(SETTINGS["cycles"]):
        for channel, rest in left.items():
            port.set(f"{channel}valid", int(rest > 0))
        for channel in ("aw", "ar"):
            port.set(f"{channel}addr", (bursts - left[channel]) * length * beat % SETTINGS["size"])
        port.set("wlast", int(left["w"] % length == 1 % length))
        await RisingEdge(dut.clk)
        for channel, cycles in events.items():
            if port.get(f"{channel}valid") and port.get(f"{channel}ready"):
                cycles.append(cycle)
                if channel in left:
                    left[channel] -= 1
    Path(SETTINGS["events"]).write_text(json.dumps(events))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def units_use_a_ram(dut):
    """Boot, fetch records and copy at the same time; record the loaded words, the records and the final memory."""
    ram: Any = AxiRam(AxiBus.from_prefix(dut, "axi_"), dut.clk, dut.rst, size=SETTINGS["size"])
    ram.write(0, Path(SETTINGS["content"]).read_bytes())
    pause(ram)
    streams = {f"fetcher__requests__{queue}": list(found) for queue, found in enumerate(SETTINGS["requests"])}
    streams |= {f"dma{engine}__instructions": list(found) for engine, found in enumerate(SETTINGS["copies"])}
    for name in streams:
        Signals(dut, name).set("valid", 0)
    engines = [Signals(dut, f"dma{engine}") for engine in range(len(SETTINGS["copies"]))]
    for engine in engines:
        for name in ("read__ready", "read__data", "write__ready"):  # no on-chip memory is connected
            engine.set(name, 0)
        engine.set("written", 1)
    boot, fetcher = Signals(dut, "boot"), Signals(dut, "fetcher")
    boot.set("start", 0)
    await start(dut)
    for name, items in streams.items():
        cocotb.start_soon(feed(dut.clk, Signals(dut, name), items))
    boot.set("address", SETTINGS["boot"])
    boot.set("start", 1)
    loaded, records, retired = {}, [[] for _ in SETTINGS["requests"]], [0] * len(engines)
    expected = list(map(len, SETTINGS["requests"])), list(map(len, SETTINGS["copies"]))
    fields = SETTINGS["beat"]  # lowest bit and width of the fields of a record's beat
    done = False
    while not (done and dut.idle.value == 1 and (list(map(len, records)), retired) == expected):
        await RisingEdge(dut.clk)
        boot.set("start", 0)
        done = boot.get("done")
        assert not boot.get("error") & 1 and not any(engine.get("error") & 1 for engine in engines)
        if boot.get("load__valid"):
            word = boot.get("load__payload")
            loaded[word % (LOCAL_BYTES // 4)] = word // (LOCAL_BYTES // 4)
        for queue, found in enumerate(records):
            if fetcher.get(f"records__{queue}__valid"):
                beat = fetcher.get(f"records__{queue}__payload")
                data, place, last, error = (beat >> low & (1 << bits) - 1 for low, bits in fields)
                assert not error
                if not place:
                    found.append("")
                found[-1] = f"{data:0{fields[0][1] // 4}x}{found[-1]}"
                if last:
                    assert len(found[-1]) == 2 * RECORD_BYTES
        retired = [count + engine.get("retired") for count, engine in zip(retired, engines, strict=True)]
    Path(SETTINGS["found"]).write_text(json.dumps({"loaded": loaded, "records": records}))
    Path(SETTINGS["after"]).write_bytes(ram.read(0, SETTINGS["size"]))


async def feed(clk, stream: "Signals", items: list[int]) -> None:
    """Offer items to a stream, one after another."""
    for item in items:
        stream.set("payload", item)
        stream.set("valid", 1)
        await RisingEdge(clk)
        while not stream.get("ready"):
            await RisingEdge(clk)
    stream.set("valid", 0)


class Signals:
    """Handles of the signals that form one interface of the simulated top level."""

    def __init__(self, dut, interface: str):
        self.dut = dut
        self.interface = interface

    def set(self, name: str, value: int) -> None:
        getattr(self.dut, f"{self.interface}__{name}").value = value

    def get(self, name: str) -> int:
        return int(getattr(self.dut, f"{self.interface}__{name}").value)
