"""PSUM: the accumulators below the array, one partition per column.

Each partition reads a word, adds the column sum and writes the result, one word per cycle: FP32, or INT32 for INT8
products. Overwriting adds the sum to the neutral element, without a read; in FP32 that is -0, because x + -0 is x for
every x, including both zeros.

Addresses form eight banks, in eight or fewer memories. Each memory reads one word and writes one word per cycle. Sums
never stall; other units stall while sums use their memory. Per cycle, other units read up to two words, of different
memories, and write one.
"""

from functools import partial

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.port import PsumWritePort, ReadPort
from neuroncore_rtl.hdl.memory.psum_block import PsumGeometry, PsumPartitions
from neuroncore_rtl.hdl.primitives.span import Span, members
from neuroncore_rtl.hdl.verilog.hierarchy import lanes
from neuroncore_rtl.spec.config import PSUM_BANKS
from neuroncore_rtl.spec.isa import TENSOR_FIELDS

__all__ = ["PSUM_ADDRESS", "Psum", "PsumWrite"]

PSUM_ADDRESS = unsigned(dict(TENSOR_FIELDS)["psum"])
"""Shape of a word address in a partition."""


class PsumWrite(data.Struct):
    """Operation on a word of some partitions.

    The sum is added to the word if `accumulate`, else replaces it; INT32 if `integer`, else FP32.
    """

    address: PSUM_ADDRESS
    accumulate: unsigned(1)
    integer: unsigned(1)
    partitions: Span


class Psum(wiring.Component):
    """Accumulates one word per cycle in all partitions.

    A word's new value can be read `spacing` cycles after `valid`.

    Arguments:
        columns: number of partitions.
        words: number of words per address bank.
        add_latency: pipeline stages of the adders.
        banks: number of memories.

    Ports:
        valid: column sums arrive in the next cycle.
        write: operation on PSUM with the sums of the next cycle.
        sums: column sums, FP32, a cycle after `valid`.
        reads: read port of other units.
        shared_reads: second read port of other units, never at the bank that `reads` requests.
        writes: write port of other units. A stalled request at `reads`, `shared_reads` or `writes` may change.
        reading: one bit per bank, set when the sums read it and other readers stall.
    """

    def __init__(self, columns: int, words: int, add_latency: int, banks: int = PSUM_BANKS):
        self.columns = columns
        self.geometry = PsumGeometry(words, banks)
        self.add_latency = add_latency
        self.spacing = Psum.spacing_of(add_latency)
        super().__init__(
            {
                "valid": In(1),
                "write": In(PsumWrite),
                "sums": In(32 * columns),
                "reads": In(ReadPort(columns, 32)),
                "shared_reads": In(ReadPort(columns, 32)),
                "writes": In(PsumWritePort(columns)),
                "reading": Out(banks),
            }
        )

    @staticmethod
    def spacing_of(add_latency: int) -> int:
        """Return the smallest number of cycles between two accumulations to a word: a read, the addition, a write."""
        return add_latency + 2

    def elaborate(self, platform):
        m = Module()
        bank_of, word_of = self.geometry.bank, self.geometry.word
        stages = [(self.valid, self.write)]
        for cycle in range(self.add_latency + 1):
            valid, write = Signal(name=f"valid{cycle}"), Signal(PsumWrite, name=f"write{cycle}", reset_less=True)
            m.d.sync += [valid.eq(stages[-1][0]), write.eq(stages[-1][1])]
            stages.append((valid, write))
        (reading, read), (_, adding), (writing, written) = stages[0], stages[1], stages[-1]

        readers, to_outside = (self.reads, self.shared_reads), self.writes.address[2:]
        from_outside = [port.address[2:] for port in readers]
        own_reads, own_writes = Signal(self.geometry.banks), Signal(self.geometry.banks)
        outside_reads = [Signal(self.geometry.banks, name=f"outside_reads{number}") for number in range(len(readers))]
        outside_writes = Signal(self.geometry.banks)
        m.d.comb += [
            self.reading.eq(own_reads),
            own_reads.eq(Mux(reading & read.accumulate, 1 << bank_of(read.address), 0)),
            own_writes.eq(Mux(writing, 1 << bank_of(written.address), 0)),
            outside_writes.eq(Mux(self.writes.valid, 1 << bank_of(to_outside), 0)),
            self.writes.ready.eq(~(own_writes & 1 << bank_of(to_outside)).any()),
        ]
        for port, address, outside in zip(readers, from_outside, outside_reads, strict=True):
            m.d.comb += [
                outside.eq(Mux(port.valid, 1 << bank_of(address), 0)),
                port.ready.eq(~(own_reads & 1 << bank_of(address)).any()),
            ]
        first, second = from_outside
        values = {
            "reads": own_reads | outside_reads[0] | outside_reads[1],
            "read_words": Cat(
                Mux(own, word_of(read.address), Mux(here, word_of(first), word_of(second)))
                for own, here in zip(own_reads, outside_reads[0], strict=True)
            ),
            "accumulate": adding.accumulate,
            "old_bank": bank_of(adding.address),
            "update": own_writes,
            "update_integer": written.integer,
            "store": outside_writes & ~own_writes,
            "mask": self.writes.mask,
            "write_words": Cat(Mux(own, word_of(written.address), word_of(to_outside)) for own in own_writes),
            "read_banks": Cat(bank_of(address) for address in from_outside),
        }
        build = partial(PsumPartitions, self.columns, self.geometry, self.add_latency)
        module = f"psum_partitions_{self.columns}_latency{self.add_latency}"
        partitions = lanes(m, "partitions", module, build, platform, of=("partition_",))
        m.d.comb += [getattr(partitions, name).eq(value) for name, value in values.items()]
        m.d.comb += [
            partitions.sums.eq(self.sums),
            partitions.updates.eq(members(written.partitions, self.columns)),
            partitions.stores.eq(self.writes.enable),
            partitions.store_data.eq(self.writes.data),
            *(port.data.eq(words) for port, words in zip(readers, partitions.read_data, strict=True)),
        ]
        return m
