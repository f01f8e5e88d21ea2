"""Some partitions of SBUF side by side: converted, and compiled for simulation, only once."""

from functools import partial

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.hierarchy import shared
from neuroncore_rtl.hdl.memory.bank import Bank
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, SBUF_BANKS, SBUF_BYTES

__all__ = ["BANK_BITS", "BLOCK", "BLOCK_BITS", "LINE_BITS", "READERS", "SbufBlock", "port_bits"]

BLOCK = 8
"""Partitions of a block; the last one may have fewer."""

BLOCK_BITS = (BLOCK - 1).bit_length()
"""Number of a partition in its block."""

BANK_BITS = (SBUF_BANKS - 1).bit_length()
"""Number of a bank."""

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
        self.select_bits = BLOCK_BITS + BANK_BITS + (LINE_BYTES // size - 1).bit_length()
        lines = data.ArrayLayout(LINE_BITS, SBUF_BANKS)
        members = {"read": In(SBUF_BANKS), "read_line": In(lines)}
        for name, words in READERS.items():
            members[f"{name}_select"] = In(range(SBUF_BANKS * WORDS // words))
            members[name] = Out(data.ArrayLayout(32 * words, partitions))
        members |= {
            "line_taken": In(ports),
            "line_select": In(data.ArrayLayout(self.select_bits, ports)),
            "lines": Out(data.ArrayLayout(8 * size, ports)),
            "write_line": In(lines),
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
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        banks = [self._bank(m, bank, platform) for bank in range(SBUF_BANKS)]
        for name, words in READERS.items():
            select = Signal.like(getattr(self, f"{name}_select"), name=f"{name}_selected", reset_less=True)
            m.d.sync += select.eq(getattr(self, f"{name}_select"))
            with m.Switch(select):
                for number in range(SBUF_BANKS * WORDS // words):
                    bank, place = divmod(number, WORDS // words)
                    with m.Case(number):
                        word = slice(32 * words * place, 32 * words * (place + 1))
                        m.d.comb += getattr(self, name).eq(Cat(line[word] for line in banks[bank]))

        places = LINE_BYTES // self.size
        for port in range(self.ports):
            line = Signal(8 * self.size, name=f"line{port}", reset_less=True)
            m.d.comb += self.lines[port].eq(line)
            taken = Signal(name=f"taken{port}")
            select = Signal(self.select_bits, name=f"select{port}", reset_less=True)
            m.d.sync += [taken.eq(self.line_taken[port]), select.eq(self.line_select[port])]
            with m.If(taken), m.Switch(select):
                for number in range(self.partitions * SBUF_BANKS * places):
                    read, place = divmod(number, places)
                    partition, bank = divmod(read, SBUF_BANKS)
                    with m.Case(number):
                        m.d.sync += line.eq(banks[bank][partition].word_select(place, 8 * self.size))
        return m

    def _bank(self, m: Module, bank: int, platform) -> list[Value]:
        """Add a bank, and return the line that it has read in each partition."""
        single = self.write_single[bank]
        port = self.write_port[bank]
        line = Signal(8 * self.size, name=f"write_line{bank}")
        m.d.comb += line.eq(self.write_lines[0])
        for number in range(1, self.ports):
            with m.If(port == number):
                m.d.comb += line.eq(self.write_lines[number])
        enable = Signal(self.partitions, name=f"enable{bank}")
        with m.If(single):
            partition = self.write_partition[bank]
            m.d.comb += enable.eq(Cat(self.write_here[bank] & (partition == p) for p in range(self.partitions)))
        with m.Else():
            m.d.comb += enable.eq(Mux(self.write_scalar[bank], self.scalar_enable, self.vector_enable))

        lines = []
        for partition in range(self.partitions):
            build = partial(Bank, LINES, LINE_BYTES)
            memory = shared(m, f"bank{bank}_{partition}", f"bank_{LINES}x{LINE_BYTES}", build, platform)
            word = Mux(self.write_scalar[bank], self.scalar_words[partition], self.vector_words[partition])
            m.d.comb += [
                memory.read.eq(self.read[bank]),
                memory.read_line.eq(self.read_line[bank]),
                memory.write.eq(Mux(enable[partition], self.write_bytes[bank], 0)),
                memory.write_line.eq(self.write_line[bank]),
                memory.write_data.eq(Mux(single, line.replicate(LINE_BYTES // self.size), word.replicate(WORDS))),
            ]
            lines.append(memory.data)
        return lines
