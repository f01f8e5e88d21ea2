"""The banks and adders of PSUM: partitions, and blocks of them that are converted, and compiled, only once."""

from functools import partial

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.integer import IntoInt
from neuroncore_rtl.hdl.hierarchy import shared
from neuroncore_rtl.hdl.memory.bank import Bank
from neuroncore_rtl.spec.config import PSUM_BANKS

__all__ = [
    "BANK_BITS", "READERS", "PsumBlock", "PsumPartition", "PsumPartitions", "bank_of", "common_ports", "word_of",
]  # fmt: skip

BANK_BITS = (PSUM_BANKS - 1).bit_length()
"""Number of a bank."""

BLOCK = 32
"""Partitions of a block."""

READERS = 2
"""Words that are read for the outside at once, of different banks."""

NEGATIVE_ZERO = 0x80000000


def word_of(words: int) -> slice:
    """Return which bits of a word address number the word in its bank, of so many."""
    return slice(0, (words - 1).bit_length())


def bank_of(words: int) -> slice:
    """Return which bits of a word address number the bank, of so many words."""
    return slice(word_of(words).stop, word_of(words).stop + BANK_BITS)


def common_ports(words: int) -> dict:
    """Return the ports of a partition that all partitions have in common, those of banks with a part for each bank.

    Arguments:
        words: of a bank.

    reads, read_words: banks that are read, and where. accumulate, old_bank: the sum that comes now is added to what
    this bank has read in the cycle before, or else to the neutral element. update, update_integer: the FP32 or INT32
    result of the sum that came `add_latency` cycles ago is written to these banks. store, mask: these bytes of a word
    from outside are. write_words: where banks are written. read_banks: of each reader outside, the bank that is read.
    """
    places = data.ArrayLayout(word_of(words).stop, PSUM_BANKS)
    return {
        "reads": In(PSUM_BANKS),
        "read_words": In(places),
        "accumulate": In(1),
        "old_bank": In(BANK_BITS),
        "update": In(PSUM_BANKS),
        "update_integer": In(1),
        "store": In(PSUM_BANKS),
        "mask": In(4),
        "write_words": In(places),
        "read_banks": In(data.ArrayLayout(BANK_BITS, READERS)),
    }


class PsumPartition(wiring.Component):
    """The banks of one partition and their adder.

    Arguments:
        words: of a bank.
        add_latency: pipeline stages of the adder.

    Ports (besides `common_ports`):
        sum: a column sum, FP32.
        updates, stores: whether this partition takes part in `update`, in `store`.
        store_data: the word from outside.
        read_data: the words that `read_banks` have read, which are now those of the cycle before.
    """

    def __init__(self, words: int, add_latency: int):
        self.words = words
        self.add_latency = add_latency
        own = {"sum": In(32), "updates": In(1), "stores": In(1), "store_data": In(32)}
        own["read_data"] = Out(data.ArrayLayout(32, READERS))
        super().__init__(common_ports(words) | own)

    def elaborate(self, platform):
        m = Module()
        m.submodules.add = add = Fp32Adder(self.add_latency)
        m.submodules.into_int = into_int = IntoInt()
        old, integer_sum = Signal(32), Signal(32)
        m.d.comb += [
            add.a.eq(self.sum),
            add.b.eq(Mux(self.accumulate, old, NEGATIVE_ZERO)),
            into_int.value.eq(self.sum),
            integer_sum.eq(into_int.out + Mux(self.accumulate, old, 0)),
        ]
        # The INT32 sum waits for the FP32 adder, so that both write at the same time.
        for cycle in range(self.add_latency):
            later_sum = Signal(32, name=f"integer_sum{cycle}", reset_less=True)
            m.d.sync += later_sum.eq(integer_sum)
            integer_sum = later_sum
        new = Signal(32)
        m.d.comb += new.eq(Mux(self.update_integer, integer_sum, add.out))

        for number in range(PSUM_BANKS):
            build = partial(Bank, self.words, 4)
            bank = shared(m, f"bank{number}", f"bank_{self.words}x4", build, platform)
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


def _block_ports(partitions: int, words: int) -> dict:
    """Return the ports of :class:`PsumBlock`."""
    values = data.ArrayLayout(32, partitions)
    return common_ports(words) | {
        "sums": In(values),
        "updates": In(partitions),
        "stores": In(partitions),
        "store_data": In(values),
        "read_data": Out(data.ArrayLayout(values, READERS)),
    }


class PsumBlock(wiring.Component):
    """Some partitions side by side.

    Arguments:
        partitions: how many.
        words: of a bank.
        add_latency: pipeline stages of the adders.

    Ports: those of :class:`PsumPartition`, with a part for each partition where it is not one of `common_ports`;
        `read_banks` a cycle earlier, with the read.
    """

    def __init__(self, partitions: int, words: int, add_latency: int):
        self.partitions = partitions
        self.words = words
        self.add_latency = add_latency
        super().__init__(_block_ports(partitions, words))

    def elaborate(self, platform):
        m = Module()
        # Registered here, so that a simulator sees no output that depends on an input of the same cycle.
        read_banks = Signal.like(self.read_banks, reset_less=True)
        m.d.sync += read_banks.eq(self.read_banks)
        for index in range(self.partitions):
            build = partial(PsumPartition, self.words, self.add_latency)
            partition = shared(m, f"partition{index}", f"partition_latency{self.add_latency}", build, platform)
            common = {name: getattr(self, name) for name in common_ports(self.words)} | {"read_banks": read_banks}
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
    """All partitions, in blocks.

    Arguments, ports: those of :class:`PsumBlock`.
    """

    def __init__(self, partitions: int, words: int, add_latency: int):
        self.partitions = partitions
        self.words = words
        self.add_latency = add_latency
        super().__init__(_block_ports(partitions, words))

    def elaborate(self, platform):
        m = Module()
        for first in range(0, self.partitions, BLOCK):
            count = min(BLOCK, self.partitions - first)
            build = partial(PsumBlock, count, self.words, self.add_latency)
            block = shared(m, f"block{first}", f"psum_{count}_latency{self.add_latency}", build, platform)
            part, words = slice(first, first + count), slice(32 * first, 32 * (first + count))
            m.d.comb += [getattr(block, name).eq(getattr(self, name)) for name in common_ports(self.words)]
            m.d.comb += [
                block.sums.eq(self.sums.as_value()[words]),
                block.updates.eq(self.updates[part]),
                block.stores.eq(self.stores[part]),
                block.store_data.eq(self.store_data.as_value()[words]),
                *(whole.as_value()[words].eq(own) for whole, own in zip(self.read_data, block.read_data, strict=True)),
            ]
        return m
