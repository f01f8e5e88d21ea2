"""PSUM: the accumulators below the array, one partition a column.

A partition reads a word, adds the column sum to it and writes it back, one per cycle: FP32, or INT32 for INT8 products.
Overwriting is adding to the neutral element, which is -0 in FP32: x + -0 is x for every x, both zeros included.
"""

from functools import partial

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.arith.add import Fp32Adder
from hdl.arith.integer import IntoInt
from hdl.hierarchy import shared
from spec.config import PSUM_BANKS, PSUM_WORDS

__all__ = ["PSUM_ADDRESS", "PsumBlock", "PsumPartition", "PsumWrite"]

PSUM_ADDRESS = unsigned((PSUM_BANKS * PSUM_WORDS - 1).bit_length())
"""Word address in a partition: the bank above the word in the bank."""

NEGATIVE_ZERO = 0x80000000


class PsumWrite(data.Struct):
    """What happens to a word: which one, added to or replaced, FP32 or INT32."""

    address: PSUM_ADDRESS
    accumulate: unsigned(1)
    integer: unsigned(1)


class PsumPartition(wiring.Component):
    """The banks of one partition and their adder.

    Arguments:
        add_latency: pipeline stages of the adder.

    Ports:
        valid: a column sum arrives in the next cycle. write: what to do with it (:class:`PsumWrite`).
        sum: the column sum, FP32, a cycle after `valid`.
        read_address, read_data: a second port; data a cycle after the address, the old word if it is being written.

    One word per cycle. The written word can be read `spacing` cycles after `valid`, so the same word must not be
    asked for again earlier than that: the sequencer sees to it.
    """

    def __init__(self, add_latency: int):
        self.add_latency = add_latency
        self.spacing = PsumPartition.spacing_of(add_latency)
        super().__init__(
            {
                "valid": In(1),
                "write": In(PsumWrite),
                "sum": In(32),
                "read_address": In(PSUM_ADDRESS),
                "read_data": Out(32),
            }
        )

    @staticmethod
    def spacing_of(add_latency: int) -> int:
        """Return the cycles between two uses of a word: one to read, the addition, one to write."""
        return add_latency + 2

    def elaborate(self, platform):
        m = Module()
        m.submodules.banks = banks = Memory(shape=32, depth=PSUM_BANKS * PSUM_WORDS, init=[])
        old, read, write = banks.read_port(), banks.read_port(), banks.write_port()
        m.submodules.add = add = Fp32Adder(self.add_latency)
        m.submodules.into_int = into_int = IntoInt()

        stage, valid = Signal(PsumWrite, reset_less=True), Signal()
        m.d.sync += [stage.eq(self.write), valid.eq(self.valid)]
        integer_sum = Signal(32)
        m.d.comb += [
            old.addr.eq(self.write.address),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
            add.a.eq(self.sum),
            add.b.eq(Mux(stage.accumulate, old.data, NEGATIVE_ZERO)),
            into_int.value.eq(self.sum),
            integer_sum.eq(into_int.out + Mux(stage.accumulate, old.data, 0)),
        ]
        # The INT32 sum waits for the FP32 adder, so that both write at the same time.
        for cycle in range(self.add_latency):
            later = Signal(PsumWrite, name=f"write{cycle}", reset_less=True)
            later_valid = Signal(name=f"valid{cycle}")
            later_sum = Signal(32, name=f"integer_sum{cycle}", reset_less=True)
            m.d.sync += [later.eq(stage), later_valid.eq(valid), later_sum.eq(integer_sum)]
            stage, valid, integer_sum = later, later_valid, later_sum
        m.d.comb += [
            write.addr.eq(stage.address),
            write.data.eq(Mux(stage.integer, integer_sum, add.out)),
            write.en.eq(valid),
        ]
        return m


class PsumBlock(wiring.Component):
    """Some partitions side by side, which the simulator compiles once.

    Arguments:
        partitions: how many.
        add_latency: pipeline stages of the adders.

    Ports: those of :class:`PsumPartition`; `valid` has a bit, `sums` and `read_data` 32 bits, for each partition.
    """

    def __init__(self, partitions: int, add_latency: int):
        self.partitions = partitions
        self.add_latency = add_latency
        super().__init__(
            {
                "valid": In(partitions),
                "write": In(PsumWrite),
                "sums": In(32 * partitions),
                "read_address": In(PSUM_ADDRESS),
                "read_data": Out(32 * partitions),
            }
        )

    def elaborate(self, platform):
        m = Module()
        read = []
        for index in range(self.partitions):
            build = partial(PsumPartition, self.add_latency)
            partition = shared(m, f"partition{index}", f"partition_latency{self.add_latency}", build, platform)
            m.d.comb += [
                partition.valid.eq(self.valid[index]),
                partition.write.eq(self.write),
                partition.sum.eq(self.sums.word_select(index, 32)),
                partition.read_address.eq(self.read_address),
            ]
            read.append(partition.read_data)
        m.d.comb += self.read_data.eq(Cat(*read))
        return m
