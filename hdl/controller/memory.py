"""Local memory of the controller, for program and data."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.spec.memory_map import LOCAL_BASE, LOCAL_BYTES

__all__ = ["LocalMemory", "LocalWord", "is_local"]


def is_local(address, size: int):
    """Return whether a byte address is in a local memory of `size` bytes, as a one-bit value."""
    return address[size.bit_length() - 1 :] == LOCAL_BASE // size


class LocalWord(data.Struct):
    """Word to write to the local memory, with its index there."""

    number: range(LOCAL_BYTES // 4)
    data: unsigned(32)


class LocalMemory(wiring.Component):
    """Local memory: RAM with two ports, each accepting one request per cycle and answering in the next.

    A read returns all writes of earlier cycles.

    Arguments:
        size: bytes, a power of two.

    Ports:
        fetch: reads of words; an address outside the memory is an error.
        data: reads and writes; the address must be inside, its upper bits are ignored.
        load: words written at boot; `data` must not request in that cycle.
    """

    fetch: In(Bus())
    data: In(Bus())
    load: In(stream.Signature(LocalWord, always_ready=True))

    def __init__(self, size: int = LOCAL_BYTES):
        self.size = size
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=32, depth=self.size // 4, init=[])
        instructions, read, write = words.read_port(), words.read_port(), words.write_port(granularity=8)
        word = Signal(range(self.size // 4))
        # Checked one cycle later, with the response: the target of a jump is available late in a cycle.
        asked = Signal.like(self.fetch.address, reset_less=True)
        m.d.comb += [
            self.fetch.ready.eq(1),
            instructions.addr.eq(self.fetch.address[2:]),
            instructions.en.eq(self.fetch.valid),
            self.fetch.result.eq(instructions.data),
            self.fetch.error.eq(~is_local(asked, self.size)),
            self.data.ready.eq(1),
            # Separate from the write address: a tool that merges both infers an asynchronous read for byte writes.
            read.addr.eq(self.data.address[2:]),
            word.eq(self.data.address[2:]),
            read.en.eq(self.data.valid & ~self.data.write),
            self.data.result.eq(read.data),
            write.addr.eq(word),
            write.data.eq(self.data.data),
        ]
        with m.If(self.load.valid):
            m.d.comb += [word.eq(self.load.payload.number), write.data.eq(self.load.payload.data), write.en.eq(0b1111)]
        with m.Elif(self.data.valid & self.data.write):
            m.d.comb += write.en.eq(self.data.mask)
        m.d.sync += [
            self.fetch.response.eq(self.fetch.valid),
            asked.eq(self.fetch.address),
            self.data.response.eq(self.data.valid),
        ]
        return m
