"""SBUF storage: blocks of partitions that are converted, and compiled for simulation, only once."""

from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.memory.bank import Bank
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import Config

__all__ = ["BLOCK_BITS", "SBUF_READERS", "Geometry", "SbufBlock", "SbufPartitions", "port_bits"]

BLOCK = 8
"""Partitions per block; the last one may have fewer."""

BLOCK_BITS = (BLOCK - 1).bit_length()
"""Bits of a partition's number in its block."""

SBUF_READERS = ("moving", "stationary", "vector", "scalar")
"""Ports that read all partitions in lockstep."""


@dataclass(frozen=True)
class Geometry:
    """Division of a partition into banks and lines, and the widths of its ports.

    Arguments:
        banks: number of banks.
        lines: number of lines per bank.
        line_bytes: number of bytes per line.
        ports: number of line ports.
        size: bytes per access of a line port.
        load_bytes: number of bytes per partition that an access of the stationary port reads.
    """

    banks: int
    lines: int
    line_bytes: int
    ports: int
    size: int
    load_bytes: int

    @classmethod
    def of(cls, config: Config) -> "Geometry":
        banks, line = config.sbuf_banks, config.line_bytes
        lines, size = config.sbuf_bytes // line // banks, config.hbm_bytes
        return cls(banks, lines, line, config.hbm_ports, size, config.load_bytes)

    @property
    def place(self) -> slice:
        return slice(0, (self.line_bytes - 1).bit_length())

    @property
    def bank(self) -> slice:
        return slice(self.place.stop, self.place.stop + self.bank_bits)

    @property
    def line(self) -> slice:
        return slice(self.bank.stop, self.bank.stop + self.line_bits)

    @property
    def bank_bits(self) -> int:
        return (self.banks - 1).bit_length()

    @property
    def line_bits(self) -> int:
        return (self.lines - 1).bit_length()

    @property
    def words(self) -> int:
        return self.line_bytes // 4

    @property
    def select_bits(self) -> int:
        """Number of address bits that select bank and position in a line, for an access of a line port."""
        return self.bank_bits + (self.line_bytes // self.size - 1).bit_length()

    @property
    def readers(self) -> dict[str, int]:
        return {name: self.load_bytes // 4 if name == "stationary" else 1 for name in SBUF_READERS}

    def __str__(self) -> str:
        return f"ports{self.ports}x{self.size}"


def port_bits(ports: int) -> int:
    """Return the width of a line port's index; at least one bit."""
    return max(1, (ports - 1).bit_length())


class SbufPartition(wiring.Component):
    """Banks of one partition, with multiplexers for reads and writes.

    The ports are those of `SbufBlock`, common to all partitions, except its own enables and words, and:

    Ports:
        *_select: for each reader of all partitions (`SBUF_READERS`), position of its words in the lines that the banks
            read in the previous cycle: bank (upper bits) and position in the line.
        line_select: bank (upper bits) and position in the line, per line port.
        write_data: per bank, data of the line port that writes it.
        write_here: banks that a line port writes in this partition.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        banks, ports, size = geometry.banks, geometry.ports, geometry.size
        members = _read_ports(1, geometry) | {
            "line_select": In(data.ArrayLayout(geometry.select_bits, ports)),
            "lines": Out(data.ArrayLayout(8 * size, ports)),
            "write_line": In(data.ArrayLayout(geometry.line_bits, banks)),
            "write_bytes": In(data.ArrayLayout(geometry.line_bytes, banks)),
            "write_single": In(banks),
            "write_scalar": In(banks),
            "write_data": In(data.ArrayLayout(8 * size, banks)),
            "write_here": In(banks),
        }
        for name in ("vector", "scalar"):
            members |= {f"{name}_enable": In(1), f"{name}_word": In(32)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        banks = [self._bank(m, bank, platform) for bank in range(geometry.banks)]
        for name, words in geometry.readers.items():
            with m.Switch(getattr(self, f"{name}_select")):
                for number in range(geometry.banks * geometry.words // words):
                    bank, place = divmod(number, geometry.words // words)
                    with m.Case(number):
                        m.d.comb += getattr(self, name).eq(banks[bank].word_select(place, 32 * words))
        places = geometry.line_bytes // geometry.size
        for port in range(geometry.ports):
            with m.Switch(self.line_select[port]):
                for number in range(geometry.banks * places):
                    bank, place = divmod(number, places)
                    with m.Case(number):
                        m.d.comb += self.lines[port].eq(banks[bank].word_select(place, 8 * geometry.size))
        return m

    def _bank(self, m: Module, bank: int, platform) -> Value:
        lines, size, words = self.geometry.lines, self.geometry.line_bytes, self.geometry.words
        memory = shared(m, f"bank{bank}", f"bank_{lines}x{size}", partial(Bank, lines, size), platform)
        single, by_scalar = self.write_single[bank], self.write_scalar[bank]
        enable = Mux(single, self.write_here[bank], Mux(by_scalar, self.scalar_enable, self.vector_enable))
        line = self.write_data[bank].replicate(size // self.geometry.size)
        word = Mux(by_scalar, self.scalar_word, self.vector_word)
        m.d.comb += [
            memory.read.eq(self.read[bank]),
            memory.read_line.eq(self.read_line[bank]),
            memory.write.eq(Mux(enable, self.write_bytes[bank], 0)),
            memory.write_line.eq(self.write_line[bank]),
            memory.write_data.eq(Mux(single, line, word.replicate(words))),
        ]
        return memory.data


def _read_ports(partitions: int, geometry: Geometry) -> dict:
    banks = geometry.banks
    members = {"read": In(banks), "read_line": In(data.ArrayLayout(geometry.line_bits, banks))}
    for name, words in geometry.readers.items():
        members[f"{name}_select"] = In(range(banks * geometry.words // words))
        members[name] = Out(data.ArrayLayout(32 * words, partitions) if partitions > 1 else 32 * words)
    return members


def _block_ports(partitions: int, geometry: Geometry) -> dict:
    banks, ports, size = geometry.banks, geometry.ports, geometry.size
    members = _read_ports(partitions, geometry) | {
        "line_taken": In(ports),
        "line_select": In(data.ArrayLayout(BLOCK_BITS + geometry.select_bits, ports)),
        "lines": Out(data.ArrayLayout(8 * size, ports)),
        "write_line": In(data.ArrayLayout(geometry.line_bits, banks)),
        "write_bytes": In(data.ArrayLayout(geometry.line_bytes, banks)),
        "write_single": In(banks),
        "write_scalar": In(banks),
        "write_here": In(banks),
        "write_partition": In(data.ArrayLayout(BLOCK_BITS, banks)),
        "write_port": In(data.ArrayLayout(port_bits(ports), banks)),
        "write_lines": In(data.ArrayLayout(8 * size, ports)),
    }
    for name in ("vector", "scalar"):
        members |= {f"{name}_enable": In(partitions), f"{name}_words": In(data.ArrayLayout(32, partitions))}
    return members


def _partition_bits(geometry: Geometry) -> dict[str, int]:
    reads = {name: 32 * words for name, words in geometry.readers.items()}
    return reads | {"vector_enable": 1, "vector_words": 32, "scalar_enable": 1, "scalar_words": 32}


class SbufBlock(wiring.Component):
    """Banks of several partitions and their multiplexers, after arbitration.

    Ports are few and wide, as each costs simulation time. No output depends on an input of the same cycle; otherwise a
    simulator would evaluate the block twice.

    Ports:
        read: banks to read, at `read_line`.
        *_select: for each reader of all partitions (`SBUF_READERS`), bank (upper bits) and position in the line. The
            reader's words of all partitions are valid one cycle after the read.
        line_taken: one bit per line port, set when it reads in this block.
        line_select: partition, bank and position in the line, from the upper bits down, per line port.
        lines: data of each line port, valid two cycles after the read until the next read in this block.
        write_bytes: one bit per byte, for each bank, set to write the byte at `write_line`.
        write_single: one bit per bank, set when a line port writes there, in one partition.
        write_scalar: one bit per bank without `write_single`, set when the scalar engine writes there, else the vector
            engine writes.
        write_here: one bit per bank of `write_single`, set when the partition to write is in this block.
        write_partition: index in this block of that partition, for each bank.
        write_port: index of the line port that writes, for each bank.
        write_lines: data of each line port.
    """

    def __init__(self, partitions: int, geometry: Geometry):
        self.partitions = partitions
        self.geometry = geometry
        super().__init__(_block_ports(partitions, geometry))

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        common = {name: getattr(self, name) for name in ("read", "read_line", "write_line", "write_bytes")}
        common |= {name: getattr(self, name) for name in ("write_single", "write_scalar")}
        common["write_data"] = Cat(self._line(m, bank) for bank in range(geometry.banks))
        for name in SBUF_READERS:
            select = Signal.like(getattr(self, f"{name}_select"), name=f"{name}_selected", reset_less=True)
            m.d.sync += select.eq(getattr(self, f"{name}_select"))
            common[f"{name}_select"] = select
        bits, ports = geometry.select_bits, range(geometry.ports)
        selects = [Signal(BLOCK_BITS + bits, name=f"select{port}", reset_less=True) for port in ports]
        m.d.sync += [select.eq(of) for select, of in zip(selects, self.line_select, strict=True)]
        common["line_select"] = Cat(select[:bits] for select in selects)

        partitions = []
        build = partial(SbufPartition, geometry)
        for number in range(self.partitions):
            partitions.append(shared(m, f"partition{number}", f"sbuf_partition_{geometry}", build, platform))
            partition = partitions[-1]
            m.d.comb += [getattr(partition, name).eq(value) for name, value in common.items()]
            here = (self.write_here[bank] & (self.write_partition[bank] == number) for bank in range(geometry.banks))
            m.d.comb += partition.write_here.eq(Cat(here))
            for name in ("vector", "scalar"):
                m.d.comb += [
                    getattr(partition, f"{name}_enable").eq(getattr(self, f"{name}_enable")[number]),
                    getattr(partition, f"{name}_word").eq(getattr(self, f"{name}_words")[number]),
                ]
        for name in SBUF_READERS:
            m.d.comb += getattr(self, name).eq(Cat(getattr(partition, name) for partition in partitions))
        for port, select in enumerate(selects):
            line, taken = Signal(8 * geometry.size, name=f"line{port}", reset_less=True), Signal(name=f"taken{port}")
            m.d.comb += self.lines[port].eq(line)
            m.d.sync += taken.eq(self.line_taken[port])
            with m.If(taken), m.Switch(select[bits:]):
                for number, partition in enumerate(partitions):
                    with m.Case(number):
                        m.d.sync += line.eq(partition.lines[port])
        return m

    def _line(self, m: Module, bank: int) -> Signal:
        line = Signal(8 * self.geometry.size, name=f"write_line{bank}")
        m.d.comb += line.eq(self.write_lines[0])
        for number in range(1, self.geometry.ports):
            with m.If(self.write_port[bank] == number):
                m.d.comb += line.eq(self.write_lines[number])
        return line


class SbufPartitions(wiring.Component):
    """All partitions, in blocks. Ports: as `SbufBlock`; those of `OF_A_BLOCK` have one element per block.

    A request takes `latency` cycles to the banks; 1 gives arbitration a separate cycle.
    """

    OF_A_BLOCK = ("read", "line_taken", "lines", "write_here")

    def __init__(self, partitions: int, geometry: Geometry, latency: int):
        self.latency = latency
        self.counts = [min(BLOCK, partitions - first) for first in range(0, partitions, BLOCK)]
        self.geometry = geometry
        members = dict(_block_ports(partitions, geometry))
        members |= {name: members[name].array(len(self.counts)) for name in self.OF_A_BLOCK}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        of_partitions = _partition_bits(self.geometry)
        for number, count in enumerate(self.counts):
            build = partial(SbufBlock, count, self.geometry)
            block = shared(m, f"block{number}", f"sbuf_block_{count}_{self.geometry}", build, platform)
            first = number * BLOCK
            for name, member in block.signature.members.items():
                inner, outer = getattr(block, name), getattr(self, name)
                if name in self.OF_A_BLOCK:
                    outer = outer[number]
                elif name in of_partitions:
                    bits = of_partitions[name]
                    outer = Value.cast(outer)[bits * first : bits * (first + count)]
                if member.flow == In:
                    m.d.comb += inner.eq(delayed(m, Value.cast(outer), self.latency, f"{name}{number}"))
                else:
                    m.d.comb += outer.eq(inner)
        return m
