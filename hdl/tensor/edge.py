"""The array's edge: memory words become operands, in every row at once.

The formats are known here and nowhere further in. Memory data is registered on arrival and decoded after that, before
the skew.
"""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.operand import Operand
from neuroncore_rtl.spec.config import LOAD_COLUMNS

__all__ = ["MOVING_BITS", "STATIONARY_BITS", "Edge", "Element"]

MOVING_BITS = 32
"""Bits that a partition delivers per moving access: one element of the widest format."""

STATIONARY_BITS = LOAD_COLUMNS * 32
"""Bits that a partition delivers per load step: `LOAD_COLUMNS` elements of the widest format."""


class Element(data.Struct):
    """How to read elements from a memory word.

    offset: byte at which the first element starts. size: log2 of its bytes. dtype: its format. half, skip_zero: as in
    :class:`EdgeDecoder`.
    """

    offset: unsigned(4)
    size: unsigned(2)
    dtype: FormatCode
    half: unsigned(1)
    skip_zero: unsigned(1)


class Edge(wiring.Component):
    """Decoders for some rows.

    Arguments:
        rows: rows.

    Ports:
        moving, stationary: how to read this cycle's words (:class:`Element`).
        moving_fresh: this cycle's moving words are new; else those of before count.
        moving_words, stationary_words: memory data for each row, `MOVING_BITS` and `STATIONARY_BITS`.
        moving_present, stationary_present: for each row, whether it takes part.
        moving_out: the moving operand of each row, a cycle later.
        weights_out: `LOAD_COLUMNS` stationary operands of each row, a cycle later.
    """

    LATENCY = 1
    """Cycles from a word to its operands."""

    def __init__(self, rows: int):
        self.rows = rows
        super().__init__(
            {
                "moving": In(Element),
                "moving_fresh": In(1),
                "moving_words": In(MOVING_BITS).array(rows),
                "moving_present": In(rows),
                "moving_out": Out(Operand).array(rows),
                "stationary": In(Element),
                "stationary_words": In(STATIONARY_BITS).array(rows),
                "stationary_present": In(rows),
                "weights_out": Out(Operand).array(rows, LOAD_COLUMNS),
            }
        )

    def elaborate(self, platform):
        m = Module()

        def registered(name, value):
            register = Signal.like(value, name=name, reset_less=True)
            m.d.sync += register.eq(value)
            return register

        def decode(name, word, element, present):
            decoder = EdgeDecoder()
            m.submodules[name] = decoder
            m.d.comb += [
                decoder.word.eq(word),
                decoder.format.eq(element.dtype),
                decoder.half.eq(element.half),
                decoder.skip_zero.eq(element.skip_zero),
                decoder.present.eq(present),
            ]
            return decoder.out

        moving = registered("moving_element", self.moving)
        moving_present = registered("moving_rows", self.moving_present)
        stationary = registered("stationary_element", self.stationary)
        stationary_present = registered("stationary_rows", self.stationary_present)
        for row in range(self.rows):
            word = Signal(MOVING_BITS, name=f"moving_word{row}", reset_less=True)
            with m.If(self.moving_fresh):
                m.d.sync += word.eq(self.moving_words[row])
            # An element starts on a multiple of its size, so two steps of selection reach it.
            half_word = Mux(moving.offset[1], word[16:], word[:16])
            byte = Mux(moving.offset[0], half_word[8:], half_word[:8])
            element = Signal(32, name=f"moving_element{row}")
            with m.Switch(moving.size):
                with m.Case(0):
                    m.d.comb += element.eq(byte)
                with m.Case(1):
                    m.d.comb += element.eq(half_word)
                with m.Default():
                    m.d.comb += element.eq(word)
            m.d.comb += self.moving_out[row].eq(decode(f"moving{row}", element, moving, moving_present[row]))

            words = registered(f"stationary_words{row}", self.stationary_words[row])
            double = Mux(stationary.offset[3], words[64:], words[:64])
            single = Mux(stationary.offset[2], double[32:], double[:32])
            for column in range(LOAD_COLUMNS):
                element = Signal(32, name=f"stationary_element{row}_{column}")
                with m.Switch(stationary.size):
                    with m.Case(0):
                        m.d.comb += element.eq(single.word_select(column, 8))
                    with m.Case(1):
                        m.d.comb += element.eq(double.word_select(column, 16))
                    with m.Default():
                        m.d.comb += element.eq(words.word_select(column, 32))
                operand = decode(f"weight{row}_{column}", element, stationary, stationary_present[row])
                m.d.comb += self.weights_out[row][column].eq(operand)
        return m
