"""PSUM storage: banks and adders of the partitions, in blocks that are converted and compiled only once."""

from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.integer import IntoInt
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.memory.bank import Bank
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import PSUM_BANKS

__all__ = ["PSUM_READERS", "PsumBlock", "PsumGeometry", "PsumPartition", "PsumPartitions", "common_ports"]

BLOCK = 32
"""Partitions per block."""

PSUM_READERS = 2
"""Read ports for units other than the tensor engine: each reads one word per cycle, from different banks."""

NEGATIVE_ZERO = 0x80000000


@dataclass(frozen=True)
class PsumGeometry:
    """Division of PSUM's words.

    Arguments:
        words: number of words per address bank.
        banks: number of memories; address bank n is in memory n modulo `banks`.
    """

    words: int
    banks: int

    @property
    def bank_bits(self) -> int:
        return (self.banks - 1).bit_length()

    @property
    def depth(self) -> int:
        return PSUM_BANKS // self.banks * self.words

    @property
    def _word_bits(self) -> int:
        return (self.words - 1).bit_length()

    def bank(self, address: Value) -> Value:
        return address[self._word_bits : self._word_bits + self.bank_bits]

    def word(self, address: Value) -> Value:
        end = (PSUM_BANKS * self.words - 1).bit_length()
        return Cat(address[: self._word_bits], address[self._word_bits + self.bank_bits : end])


def common_ports(geometry: PsumGeometry) -> dict:
    """Return the ports that are common to all partitions.

    Ports:
        reads: one bit per bank, set to read the word at `read_words` of the bank.
        accumulate: the current column sum is added to the old word, else to -0.
        old_bank: index of the bank that read the old word in the previous cycle.
        update: one bit per bank, set to write the result of the column sum of `add_latency` cycles ago.
        update_integer: the result to write is INT32, else FP32.
        store: one bit per bank, set to write another unit's word.
        mask: one bit per byte of the other unit's word, set to write the byte.
        write_words: position of the word to write, for each bank.
        read_banks: bank of the data of each of `PSUM_READERS`.
    """
    banks, number = geometry.banks, geometry.bank_bits
    places = data.ArrayLayout((geometry.depth - 1).bit_length(), banks)
    return {
        "reads": In(banks),
        "read_words": In(places),
        "accumulate": In(1),
        "old_bank": In(number),
        "update": In(banks),
        "update_integer": In(1),
        "store": In(banks),
        "mask": In(4),
        "write_words": In(places),
        "read_banks": In(data.ArrayLayout(number, PSUM_READERS)),
    }


class PsumPartition(wiring.Component):
    """Banks and adder of one partition.

    Ports (besides `common_ports`):
        sum: column sum, FP32.
        updates: `update` applies to this partition.
        stores: `store` applies to this partition.
        store_data: another unit's word.
        read_data: words from `read_banks`, which PsumBlock delays to the cycle of the data.
    """

    def __init__(self, geometry: PsumGeometry, add_latency: int):
        self.geometry = geometry
        self.add_latency = add_latency
        own = {"sum": In(32), "updates": In(1), "stores": In(1), "store_data": In(32)}
        own["read_data"] = Out(data.ArrayLayout(32, PSUM_READERS))
        super().__init__(common_ports(geometry) | own)

    def elaborate(self, platform):
        m = Module()
        m.submodules.add = add = Fp32Adder(self.add_latency)
        m.submodules.into_int = into_int = IntoInt()
        old, addend = Signal(32), Signal(32)
        m.d.comb += [
            add.a.eq(self.sum),
            add.b.eq(Mux(self.accumulate, old, NEGATIVE_ZERO)),
            into_int.value.eq(self.sum),
            addend.eq(Mux(self.accumulate, old, 0)),
        ]
        # The INT32 sum is registered where the FP32 adder registers its operands, if it does, and then delayed to the
        # same latency.
        places = add.CUTS[self.add_latency]
        terms = Pipeline(m, places).cut("input", integer=into_int.out, addend=addend)
        integer_sum = Signal(32)
        m.d.comb += integer_sum.eq(terms.integer + terms.addend)
        for cycle in range("input" in places, self.add_latency):
            later_sum = Signal(32, name=f"integer_sum{cycle}", reset_less=True)
            m.d.sync += later_sum.eq(integer_sum)
            integer_sum = later_sum
        new = Signal(32)
        m.d.comb += new.eq(Mux(self.update_integer, integer_sum, add.out))

        words = self.geometry.depth
        for number in range(self.geometry.banks):
            bank = shared(m, f"bank{number}", f"bank_{words}x4", partial(Bank, words, 4), platform)
            update, store = self.update[number] & self.updates, self.store[number] & self.stores
            m.d.comb += [
                bank.read.eq(self.reads[number]),
                bank.read_line.eq(self.read_words[number]),
                bank.write.eq(Mux(update, 0xF, Mux(store, self.mask, 0))),
                bank.write_line.eq(self.write_words[number]),
                bank.write_data.eq(Mux(update, new, self.store_data)),
            ]
            for select, word in ((self.old_bank, old), *zip(self.read_banks, self.read_data, strict=True)):
                with m.If(select == number):
                    m.d.comb += word.eq(bank.data)
        return m


def _block_ports(partitions: int, geometry: PsumGeometry) -> dict:
    values = data.ArrayLayout(32, partitions)
    return common_ports(geometry) | {
        "sums": In(values),
        "updates": In(partitions),
        "stores": In(partitions),
        "store_data": In(values),
        "read_data": Out(data.ArrayLayout(values, PSUM_READERS)),
    }


class PsumBlock(wiring.Component):
    """Several partitions of PSUM.

    The ports are those of `PsumPartition`, with one element per partition; the ports of `common_ports` are not
    repeated. `read_banks` must be valid in the cycle of the read, one cycle earlier than in `PsumPartition`.
    """

    def __init__(self, partitions: int, geometry: PsumGeometry, add_latency: int):
        self.partitions = partitions
        self.geometry = geometry
        self.add_latency = add_latency
        super().__init__(_block_ports(partitions, geometry))

    def elaborate(self, platform):
        m = Module()
        # A register, so that a simulator sees no output that depends on an input of the same cycle.
        read_banks = Signal.like(self.read_banks, reset_less=True)
        m.d.sync += read_banks.eq(self.read_banks)
        for index in range(self.partitions):
            build = partial(PsumPartition, self.geometry, self.add_latency)
            partition = shared(m, f"partition{index}", f"partition_latency{self.add_latency}", build, platform)
            common = {name: getattr(self, name) for name in common_ports(self.geometry)} | {"read_banks": read_banks}
            m.d.comb += [getattr(partition, name).eq(value) for name, value in common.items()]
            m.d.comb += [
                partition.sum.eq(self.sums[index]),
                partition.updates.eq(self.updates[index]),
                partition.stores.eq(self.stores[index]),
                partition.store_data.eq(self.store_data[index]),
                *(words[index].eq(word) for words, word in zip(self.read_data, partition.read_data, strict=True)),
            ]
        return m


class PsumPartitions(wiring.Component):
    """All partitions of PSUM, divided into blocks. The ports are like those of `PsumBlock`."""

    def __init__(self, partitions: int, geometry: PsumGeometry, add_latency: int):
        self.partitions = partitions
        self.geometry = geometry
        self.add_latency = add_latency
        super().__init__(_block_ports(partitions, geometry))

    def elaborate(self, platform):
        m = Module()
        for first in range(0, self.partitions, BLOCK):
            count = min(BLOCK, self.partitions - first)
            build = partial(PsumBlock, count, self.geometry, self.add_latency)
            block = shared(m, f"block{first}", f"psum_{count}_latency{self.add_latency}", build, platform)
            part, words = slice(first, first + count), slice(32 * first, 32 * (first + count))
            m.d.comb += [getattr(block, name).eq(getattr(self, name)) for name in common_ports(self.geometry)]
            m.d.comb += [
                block.sums.eq(self.sums.as_value()[words]),
                block.updates.eq(self.updates[part]),
                block.stores.eq(self.stores[part]),
                block.store_data.eq(self.store_data.as_value()[words]),
                *(whole.as_value()[words].eq(own) for whole, own in zip(self.read_data, block.read_data, strict=True)),
            ]
        return m
