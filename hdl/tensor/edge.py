"""Edge of the array: converts memory words to operands, all rows in parallel.

Number formats are handled only here. Memory data is registered on arrival, then decoded, before the skew.
"""

from functools import partial

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS, Operand
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import LOAD_COLUMNS

__all__ = ["MOVING_BITS", "STATIONARY_BITS", "Edge", "EdgeRow", "Element", "edge_name"]

MOVING_BITS = 32
"""Bits that a partition delivers per moving access: one element of the widest format."""

STATIONARY_BITS = LOAD_COLUMNS * 32
"""Bits that a partition delivers per load step: `LOAD_COLUMNS` elements of the widest format."""


class Element(data.Struct):
    """Position and format of elements in a memory word.

    Fields:
        offset: byte of the word at which the first element starts.
        size: log2 of the element size in bytes.
        dtype: format of the elements.
        half, skip_zero: see `EdgeDecoder`.
    """

    offset: unsigned(4)
    size: unsigned(2)
    dtype: FormatCode
    half: unsigned(1)
    skip_zero: unsigned(1)


class EdgeRow(wiring.Component):
    """Decoders of one row.

    Arguments:
        significand_bits: significand width of an operand.
        columns: number of columns of the array; if below `LOAD_COLUMNS`, the missing operands are zero.
        latency: 1 to 3 cycles, one to register the words, the others in the decoders.

    Ports:
        moving, stationary: position and format of the operands in the previous cycle's words (`Element`).
        moving_present, stationary_present: the row is part of the operand; else its operands are absent.
        fresh: this cycle's moving word is new; else the last one is used again.
        moving_word, stationary_words: words from the memory.
        moving_out, weights_out: moving operand and stationary operands, `latency` cycles later.
    """

    def __init__(self, significand_bits: int = SIGNIFICAND_BITS, columns: int = LOAD_COLUMNS, latency: int = 1):
        self.latency = latency
        self.significand_bits = significand_bits
        self.columns = columns
        operand = Operand(significand_bits)
        super().__init__(
            {
                "moving": In(Element),
                "moving_present": In(1),
                "fresh": In(1),
                "moving_word": In(MOVING_BITS),
                "moving_out": Out(operand),
                "stationary": In(Element),
                "stationary_present": In(1),
                "stationary_words": In(STATIONARY_BITS),
                "weights_out": Out(operand).array(LOAD_COLUMNS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        moving, stationary = self.moving, self.stationary
        word = Signal(MOVING_BITS, reset_less=True)
        with m.If(self.fresh):
            m.d.sync += word.eq(self.moving_word)
        # An element is aligned to its size, so two steps of selection suffice.
        half_word = Mux(moving.offset[1], word[16:], word[:16])
        byte = Mux(moving.offset[0], half_word[8:], half_word[:8])
        element = _sized(m, "moving_element", moving.size, byte, half_word, word)
        m.d.comb += self.moving_out.eq(self._decode(m, "moving_decoder", element, moving, self.moving_present))

        words = Signal(STATIONARY_BITS, reset_less=True)
        m.d.sync += words.eq(self.stationary_words)
        double = Mux(stationary.offset[3], words[64:], words[:64])
        single = Mux(stationary.offset[2], double[32:], double[:32])
        for column in range(min(self.columns, LOAD_COLUMNS)):
            sizes = (values.word_select(column, bits) for values, bits in ((single, 8), (double, 16), (words, 32)))
            element = _sized(m, f"stationary_element{column}", stationary.size, *sizes)
            operand = self._decode(m, f"weight_decoder{column}", element, stationary, self.stationary_present)
            m.d.comb += self.weights_out[column].eq(operand)
        return m

    def _decode(self, m: Module, name: str, word, element: Element, present):
        m.submodules[name] = decoder = EdgeDecoder(self.significand_bits, self.latency - 1)
        m.d.comb += [
            decoder.word.eq(word),
            decoder.format.eq(element.dtype),
            decoder.half.eq(element.half),
            decoder.skip_zero.eq(element.skip_zero),
            decoder.present.eq(present),
        ]
        return decoder.out


def edge_name(significand_bits: int, columns: int, latency: int) -> str:
    """Return the part of a module's Verilog name with the parameters of an edge."""
    few = f"_columns{columns}" if columns < LOAD_COLUMNS else ""
    late = f"_latency{latency}" if latency > 1 else ""
    return f"bits{significand_bits}{few}{late}"


def _sized(m: Module, name: str, size, byte, half_word, word) -> Signal:
    element = Signal(32, name=name)
    with m.Switch(size):
        with m.Case(0):
            m.d.comb += element.eq(byte)
        with m.Case(1):
            m.d.comb += element.eq(half_word)
        with m.Default():
            m.d.comb += element.eq(word)
    return element


class Edge(wiring.Component):
    """Decoders of several rows.

    Arguments:
        rows: number of rows of the array.
        significand_bits, columns, latency: see `EdgeRow`.

    Ports:
        moving, stationary: position and format of the operands in this cycle's words (`Element`).
        moving_fresh: see `fresh` of `EdgeRow`.
        moving_words, stationary_words: memory data, `MOVING_BITS` and `STATIONARY_BITS` per row.
        moving_present, stationary_present: one bit per row, set if the row is part of the operand.
        moving_out, weights_out: one moving and `LOAD_COLUMNS` stationary operands per row, `latency` cycles later.
    """

    def __init__(
        self, rows: int, significand_bits: int = SIGNIFICAND_BITS, columns: int = LOAD_COLUMNS, latency: int = 1
    ):
        self.rows = rows
        self.latency = latency
        self.significand_bits = significand_bits
        self.columns = columns
        operand = Operand(significand_bits)
        super().__init__(
            {
                "moving": In(Element),
                "moving_fresh": In(1),
                "moving_words": In(MOVING_BITS).array(rows),
                "moving_present": In(rows),
                "moving_out": Out(operand).array(rows),
                "stationary": In(Element),
                "stationary_words": In(STATIONARY_BITS).array(rows),
                "stationary_present": In(rows),
                "weights_out": Out(operand).array(rows, LOAD_COLUMNS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        common = {}
        for name in ("moving", "moving_present", "stationary", "stationary_present"):
            port = getattr(self, name)
            common[name] = Signal.like(port, name=f"{name}_element", reset_less=True)
            m.d.sync += common[name].eq(port)
        build = partial(EdgeRow, self.significand_bits, self.columns, self.latency)
        name = f"edge_row_{edge_name(self.significand_bits, self.columns, self.latency)}"
        for number in range(self.rows):
            row = shared(m, f"row{number}", name, build, platform)
            m.d.comb += [
                row.moving.eq(common["moving"]),
                row.moving_present.eq(common["moving_present"][number]),
                row.fresh.eq(self.moving_fresh),
                row.moving_word.eq(self.moving_words[number]),
                row.stationary.eq(common["stationary"]),
                row.stationary_present.eq(common["stationary_present"][number]),
                row.stationary_words.eq(self.stationary_words[number]),
                self.moving_out[number].eq(row.moving_out),
                *(port.eq(value) for port, value in zip(self.weights_out[number], row.weights_out, strict=True)),
            ]
        return m
