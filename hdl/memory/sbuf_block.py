"""Some partitions of SBUF side by side: converted, and compiled for simulation, only once."""

from functools import partial

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.hierarchy import shared
from neuroncore_rtl.hdl.memory.bank import Bank
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, SBUF_BANKS, SBUF_BYTES

__all__ = [
    "BANK",
    "BANK_BITS",
    "BLOCK",
    "BLOCK_BITS",
    "LINE_BITS",
    "READERS",
    "SbufBlock",
    "SbufPartitions",
    "port_bits",
]

BLOCK = 8
"""Partitions of a block; the last one may have fewer."""

BLOCK_BITS = (BLOCK - 1).bit_length()
"""Number of a partition in its block."""

BANK_BITS = (SBUF_BANKS - 1).bit_length()
"""Number of a bank."""

BANK = slice((LINE_BYTES - 1).bit_length(), (LINE_BYTES - 1).bit_length() + BANK_BITS)
"""Of a byte address, the bank."""

LINES = SBUF_BYTES // LINE_BYTES // SBUF_BANKS
"""Lines of a bank in one partition."""

LINE_BITS = (LINES - 1).bit_length()
"""Number of a line in its bank."""

WORDS = LINE_BYTES // 4
"""Words of 32 bits in a line."""

READERS = {"moving": 1, "stationary": LOAD_COLUMNS, "vector": 1, "scalar": 1}
"""Who reads all partitions in lockstep, and how many adjacent words of each."""


def port_bits(ports: int) -> int:
    """Return the bits that number line ports; at least one."""
    return max(1, (ports - 1).bit_length())


class SbufPartition(wiring.Component):
    """The banks of one partition, and what reads and writes of it.

    Arguments:
        ports: line ports.
        size: bytes of a line port's access.

    Ports, all but the last five those of :class:`SbufBlock` with the same names, the same for all partitions:
        *_select: what the readers have of the lines that were read in the cycle before, as `moving`, `stationary`,
            `vector`, `scalar`. line_select: of each line port bank above place in the line, as its part of `lines`.
        write_data: of each bank what a line port writes.
        write_here: a bit for each bank, whether a line port writes it in this partition.
        vector_enable, vector_word, scalar_enable, scalar_word: those of this partition.
    """

    def __init__(self, ports: int, size: int):
        self.ports = ports
        self.size = size
        members = _reading(1) | {
            "line_select": In(data.ArrayLayout(_place_bits(size), ports)),
            "lines": Out(data.ArrayLayout(8 * size, ports)),
            "write_line": In(data.ArrayLayout(LINE_BITS, SBUF_BANKS)),
            "write_bytes": In(data.ArrayLayout(LINE_BYTES, SBUF_BANKS)),
            "write_single": In(SBUF_BANKS),
            "write_scalar": In(SBUF_BANKS),
            "write_data": In(data.ArrayLayout(8 * size, SBUF_BANKS)),
            "write_here": In(SBUF_BANKS),
        }
        for name in ("vector", "scalar"):
            members |= {f"{name}_enable": In(1), f"{name}_word": In(32)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        banks = [self._bank(m, bank, platform) for bank in range(SBUF_BANKS)]
        for name, words in READERS.items():
            with m.Switch(getattr(self, f"{name}_select")):
                for number in range(SBUF_BANKS * WORDS // words):
                    bank, place = divmod(number, WORDS // words)
                    with m.Case(number):
                        m.d.comb += getattr(self, name).eq(banks[bank].word_select(place, 32 * words))
        places = LINE_BYTES // self.size
        for port in range(self.ports):
            with m.Switch(self.line_select[port]):
                for number in range(SBUF_BANKS * places):
                    bank, place = divmod(number, places)
                    with m.Case(number):
                        m.d.comb += self.lines[port].eq(banks[bank].word_select(place, 8 * self.size))
        return m

    def _bank(self, m: Module, bank: int, platform) -> Value:
        """Add a bank, and return the line that it has read."""
        memory = shared(m, f"bank{bank}", f"bank_{LINES}x{LINE_BYTES}", partial(Bank, LINES, LINE_BYTES), platform)
        single, by_scalar = self.write_single[bank], self.write_scalar[bank]
        enable = Mux(single, self.write_here[bank], Mux(by_scalar, self.scalar_enable, self.vector_enable))
        line = self.write_data[bank].replicate(LINE_BYTES // self.size)
        word = Mux(by_scalar, self.scalar_word, self.vector_word)
        m.d.comb += [
            memory.read.eq(self.read[bank]),
            memory.read_line.eq(self.read_line[bank]),
            memory.write.eq(Mux(enable, self.write_bytes[bank], 0)),
            memory.write_line.eq(self.write_line[bank]),
            memory.write_data.eq(Mux(single, line, word.replicate(WORDS))),
        ]
        return memory.data


def _place_bits(size: int) -> int:
    """Return the bits of bank above place in a line."""
    return BANK_BITS + (LINE_BYTES // size - 1).bit_length()


def _reading(partitions: int) -> dict:
    """Return the ports of those who read partitions in lockstep."""
    members = {"read": In(SBUF_BANKS), "read_line": In(data.ArrayLayout(LINE_BITS, SBUF_BANKS))}
    for name, words in READERS.items():
        members[f"{name}_select"] = In(range(SBUF_BANKS * WORDS // words))
        members[name] = Out(data.ArrayLayout(32 * words, partitions) if partitions > 1 else 32 * words)
    return members


def _block_ports(partitions: int, ports: int, size: int) -> dict:
    """Return the ports of :class:`SbufBlock`."""
    members = _reading(partitions) | {
        "line_taken": In(ports),
        "line_select": In(data.ArrayLayout(BLOCK_BITS + _place_bits(size), ports)),
        "lines": Out(data.ArrayLayout(8 * size, ports)),
        "write_line": In(data.ArrayLayout(LINE_BITS, SBUF_BANKS)),
        "write_bytes": In(data.ArrayLayout(LINE_BYTES, SBUF_BANKS)),
        "write_single": In(SBUF_BANKS),
        "write_scalar": In(SBUF_BANKS),
        "write_here": In(SBUF_BANKS),
        "write_partition": In(data.ArrayLayout(BLOCK_BITS, SBUF_BANKS)),
        "write_port": In(data.ArrayLayout(port_bits(ports), SBUF_BANKS)),
        "write_lines": In(data.ArrayLayout(8 * size, ports)),
    }
    for name in ("vector", "scalar"):
        members |= {f"{name}_enable": In(partitions), f"{name}_words": In(data.ArrayLayout(32, partitions))}
    return members


_OF_PARTITIONS = {name: 32 * words for name, words in READERS.items()} | {
    "vector_enable": 1,
    "vector_words": 32,
    "scalar_enable": 1,
    "scalar_words": 32,
}
"""The ports of a block that have a part for each partition, and its bits."""


class SbufBlock(wiring.Component):
    """The banks of some partitions, and the way from them and to them. Whose turn a bank is has been decided.

    Arguments:
        partitions: how many.
        ports: line ports.
        size: bytes of a line port's access.

    Ports, few and wide, as each costs time at the boundary of a block that is compiled apart; and no output depends on
    an input of the same cycle, lest a simulator evaluate all of it again:
        read: a bit for each bank that is read. read_line: its line, of each bank.
        moving_select, stationary_select, vector_select, scalar_select: bank above place in the line, which `moving`,
            `stationary`, `vector`, `scalar` have of all partitions a cycle after the read.
        line_taken: a bit for each line port that reads here. line_select: of each what it reads: partition above bank
            above place in the line. lines: its bytes, two cycles later and until it reads here again.
        write_line: of each bank the line that is written. write_bytes: of each bank which bytes of it.
        write_single: a bit for each bank, of which one partition is written by a line port; else the `scalar_enable`
            ones with `scalar_words` if its bit of `write_scalar` is set, or else the `vector_enable` ones with
            `vector_words`. write_here: a bit for each bank, whether that partition is here. write_partition,
            write_port: of each bank its number in this block, and the line port. write_lines: bytes of each line port.
    """

    def __init__(self, partitions: int, ports: int, size: int):
        self.partitions = partitions
        self.ports = ports
        self.size = size
        super().__init__(_block_ports(partitions, ports, size))

    def elaborate(self, platform):
        m = Module()
        common = {name: getattr(self, name) for name in ("read", "read_line", "write_line", "write_bytes")}
        common |= {name: getattr(self, name) for name in ("write_single", "write_scalar")}
        common["write_data"] = Cat(self._line(m, bank) for bank in range(SBUF_BANKS))
        for name in READERS:
            select = Signal.like(getattr(self, f"{name}_select"), name=f"{name}_selected", reset_less=True)
            m.d.sync += select.eq(getattr(self, f"{name}_select"))
            common[f"{name}_select"] = select
        bits = _place_bits(self.size)
        selects = [Signal(BLOCK_BITS + bits, name=f"select{port}", reset_less=True) for port in range(self.ports)]
        m.d.sync += [select.eq(of) for select, of in zip(selects, self.line_select, strict=True)]
        common["line_select"] = Cat(select[:bits] for select in selects)

        partitions = []
        build = partial(SbufPartition, self.ports, self.size)
        for number in range(self.partitions):
            module = f"sbuf_partition_ports{self.ports}x{self.size}"
            partitions.append(shared(m, f"partition{number}", module, build, platform))
            partition = partitions[-1]
            m.d.comb += [getattr(partition, name).eq(value) for name, value in common.items()]
            here = (self.write_here[bank] & (self.write_partition[bank] == number) for bank in range(SBUF_BANKS))
            m.d.comb += partition.write_here.eq(Cat(here))
            for name in ("vector", "scalar"):
                m.d.comb += [
                    getattr(partition, f"{name}_enable").eq(getattr(self, f"{name}_enable")[number]),
                    getattr(partition, f"{name}_word").eq(getattr(self, f"{name}_words")[number]),
                ]
        for name in READERS:
            m.d.comb += getattr(self, name).eq(Cat(getattr(partition, name) for partition in partitions))
        for port, select in enumerate(selects):
            line, taken = Signal(8 * self.size, name=f"line{port}", reset_less=True), Signal(name=f"taken{port}")
            m.d.comb += self.lines[port].eq(line)
            m.d.sync += taken.eq(self.line_taken[port])
            with m.If(taken), m.Switch(select[bits:]):
                for number, partition in enumerate(partitions):
                    with m.Case(number):
                        m.d.sync += line.eq(partition.lines[port])
        return m

    def _line(self, m: Module, bank: int) -> Signal:
        """Return what line ports write to a bank."""
        line = Signal(8 * self.size, name=f"write_line{bank}")
        m.d.comb += line.eq(self.write_lines[0])
        for number in range(1, self.ports):
            with m.If(self.write_port[bank] == number):
                m.d.comb += line.eq(self.write_lines[number])
        return line


class SbufPartitions(wiring.Component):
    """All partitions, in blocks.

    Arguments, ports: those of :class:`SbufBlock`; the ports that are a block's own, `OF_A_BLOCK`, are an array with one
    for each block.
    """

    OF_A_BLOCK = ("read", "line_taken", "lines", "write_here")

    def __init__(self, partitions: int, ports: int, size: int):
        self.counts = [min(BLOCK, partitions - first) for first in range(0, partitions, BLOCK)]
        self.ports = ports
        self.size = size
        members = dict(_block_ports(partitions, ports, size))
        members |= {name: members[name].array(len(self.counts)) for name in self.OF_A_BLOCK}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for number, count in enumerate(self.counts):
            module = f"sbuf_block_{count}_ports{self.ports}x{self.size}"
            block = shared(m, f"block{number}", module, partial(SbufBlock, count, self.ports, self.size), platform)
            first = number * BLOCK
            for name, member in block.signature.members.items():
                inner, outer = getattr(block, name), getattr(self, name)
                if name in self.OF_A_BLOCK:
                    outer = outer[number]
                elif name in _OF_PARTITIONS:
                    bits = _OF_PARTITIONS[name]
                    outer = Value.cast(outer)[bits * first : bits * (first + count)]
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m
