"""Register file x0 to x31 with bypasses from later stages."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterFile"]


class RegisterFile(wiring.Component):
    """Register file: two combinational reads. Contents are initially 0 and survive a reset.

    Results are bypassed from two stages; the younger one has priority. Register 0 is never written.

    Ports:
        rs1, rs2: numbers of the registers to read.
        value1, value2: values of these registers after all writes in flight.
        execute, execute_value: destination of the instruction in the execute stage, 0 for none, and its result.
        late1, late2: `value1`, or `value2`, is the result of the instruction in the execute stage.
        write_back, write_back_value: destination and result of the instruction in the write-back stage.
        write: write `write_back_value` to the register file at the end of this cycle.
    """

    rs1: In(5)
    rs2: In(5)
    value1: Out(32)
    value2: Out(32)
    execute: In(5)
    execute_value: In(32)
    late1: Out(1)
    late2: Out(1)
    write_back: In(5)
    write_back_value: In(32)
    write: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=32, depth=32, init=[])
        port = words.write_port()
        m.d.comb += [
            port.addr.eq(self.write_back),
            port.data.eq(self.write_back_value),
            port.en.eq(self.write & self.write_back.any()),
        ]
        executes, writes = Signal(), Signal()
        m.d.comb += [executes.eq(self.execute.any()), writes.eq(self.write_back.any())]
        for number, value, late in ((self.rs1, self.value1, self.late1), (self.rs2, self.value2, self.late2)):
            read = words.read_port(domain="comb")
            m.d.comb += [read.addr.eq(number), late.eq(executes & (self.execute == number))]
            with m.If(late):
                m.d.comb += value.eq(self.execute_value)
            with m.Elif(writes & (self.write_back == number)):
                m.d.comb += value.eq(self.write_back_value)
            with m.Else():
                m.d.comb += value.eq(read.data)
        return m
