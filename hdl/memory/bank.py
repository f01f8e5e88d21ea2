"""A memory bank: the one kind of memory that SBUF and PSUM are made of."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Bank"]


class Bank(wiring.Component):
    """Reads one line and writes one line a cycle, as the block memories of an FPGA do. Starts as zeros.

    Arguments:
        lines: how many.
        size: bytes of a line.

    Ports:
        read, read_line: reads that line. data: what it held before this cycle's write; a cycle later, and from then on
            until the next read.
        write: a bit for each byte that is written. write_line, write_data: where, and what.
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
