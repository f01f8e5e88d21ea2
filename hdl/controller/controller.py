"""Controller: a processor with local memory and timer, which controls the core through a bus."""

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.controller.memory import LocalMemory, LocalWord, is_local
from neuroncore_rtl.hdl.controller.timer import Timer, is_timer
from neuroncore_rtl.spec.memory_map import LOCAL_BYTES

__all__ = ["Controller"]


class Controller(wiring.Component):
    """Controller: runs the program in its local memory. Local memory and timer answer in the next cycle.

    Arguments:
        local_bytes: size of the local memory in bytes.
        fetch_latency: see `Cpu`.

    Ports:
        run: 0 holds the processor in reset, so that the memory can be loaded. It must not fall while a request to
            `peripheral` is outstanding.
        load: words for the local memory.
        peripheral: data accesses to all other addresses; at most one is outstanding. A fetch from there is an access
            fault.
        external_interrupt: interrupt, a level.
        waiting, trace_*: see `Cpu`.
    """

    run: In(1)
    load: In(stream.Signature(LocalWord, always_ready=True))
    peripheral: Out(Bus())
    external_interrupt: In(1)
    waiting: Out(1)
    trace_valid: Out(1)
    trace_pc: Out(32)
    trace_instruction: Out(32)
    trace_trap: Out(1)
    trace_cause: Out(32)
    trace_rd: Out(5)
    trace_value: Out(32)

    def __init__(self, local_bytes: int = LOCAL_BYTES, fetch_latency: int = 0):
        self.local_bytes = local_bytes
        self.fetch_latency = fetch_latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cpu = Cpu(self.fetch_latency)
        m.submodules.cpu = ResetInserter(~self.run)(cpu)
        m.submodules.memory = memory = LocalMemory(self.local_bytes)
        m.submodules.timer = timer = Timer()
        wiring.connect(m, cpu.fetch, memory.fetch)
        wiring.connect(m, wiring.flipped(self.load), memory.load)
        m.d.comb += [
            cpu.time.eq(timer.time),
            cpu.timer_interrupt.eq(timer.interrupt),
            cpu.external_interrupt.eq(self.external_interrupt),
            self.waiting.eq(cpu.waiting),
            self.trace_valid.eq(cpu.trace_valid),
            self.trace_pc.eq(cpu.trace_pc),
            self.trace_instruction.eq(cpu.trace_instruction),
            self.trace_trap.eq(cpu.trace_trap),
            self.trace_cause.eq(cpu.trace_cause),
            self.trace_rd.eq(cpu.trace_rd),
            self.trace_value.eq(cpu.trace_value),
        ]
        self._data(m, cpu.data, memory.data, timer.bus)
        return m

    def _data(self, m: Module, data, memory, timer):
        """Send each data request to the unit at its address.

        A response belongs to the last request, because at most one is outstanding.
        """
        local, timed = Signal(), Signal()
        m.d.comb += [local.eq(is_local(data.address, self.local_bytes)), timed.eq(is_timer(data.address))]
        chosen = {"memory": (memory, local), "timer": (timer, timed), "peripheral": (self.peripheral, ~local & ~timed)}
        for bus, here in chosen.values():
            m.d.comb += [
                bus.valid.eq(data.valid & here),
                bus.address.eq(data.address),
                bus.write.eq(data.write),
                bus.mask.eq(data.mask),
                bus.data.eq(data.data),
            ]
            with m.If(here):
                m.d.comb += data.ready.eq(bus.ready)
            with m.If(bus.response):
                m.d.comb += [data.response.eq(1), data.result.eq(bus.result), data.error.eq(bus.error)]
        return m
