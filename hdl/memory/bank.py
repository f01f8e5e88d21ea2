"""Memory bank: the storage element of SBUF and PSUM."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Bank"]


class Bank(wiring.Component):
    """Reads one line and writes one line per cycle, like block RAM of an FPGA. Initially zero.

    Arguments:
        lines: number of lines.
        size: bytes per line.

    Ports:
        data: the line read, before a write of the same cycle takes effect; valid from the next cycle until the next
            read.
        write: one bit per byte to write.
    """

    def __init__(self, lines: int, size: int):
        self.lines = lines
        self.size = size
        super().__init__(
            {
                "read": In(1),
                "read_line": In(range(lines)),
                "data": Out(8 * size),
                "write": In(size),
                "write_line": In(range(lines)),
                "write_data": In(8 * size),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8 * self.size, depth=self.lines, init=[])
        read, write = memory.read_port(), memory.write_port(granularity=8)
        m.d.comb += [
            read.en.eq(self.read),
            read.addr.eq(self.read_line),
            self.data.eq(read.data),
            write.en.eq(self.write),
            write.addr.eq(self.write_line),
            write.data.eq(self.write_data),
        ]
        return m
