"""The registers x0 to x31, and the ways around them: a result is used before it is written."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterFile"]


class RegisterFile(wiring.Component):
    """Reads two registers within the cycle. Contents are 0 at first, and stay in reset.

    Results reach them from two stages; the younger one counts, and register 0 is never written.

    Ports:
        rs1, rs2: numbers of the registers. value1, value2: what they hold once all that is under way is written.
        execute, execute_value: register that the instruction in the execute stage writes, 0 for none, and its result.
        late1, late2: the value would be that result.
        write_back, write_back_value: likewise of the write-back stage.
        write: that one is written at the end of this cycle.
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
