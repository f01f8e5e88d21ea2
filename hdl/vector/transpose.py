"""Transposition of square blocks: one column in and one out per step.

A square of words that shifts along either rows or columns needs no second copy. A block is shifted out perpendicular to
the direction in which it was shifted in, and the next block is shifted in behind it.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Transposer"]

_WORD = 32


class Transposer(wiring.Component):
    """Transposer: word j of a block's i-th input column becomes word i of its j-th output column.

    Arguments:
        size: number of columns of a block, and of words of a column.

    Ports:
        step: accept a column, and output a column of the previous block.
        first: with `step`, the column is the first of its block.
        width: log2 of the used bytes of each word; the bits above these are replaced by zeros.
        column: `size` words, word 0 lowest.
        out: the output column, one cycle after its step.
    """

    LATENCY = 1
    """Cycles from a step to its output column."""

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {"step": In(1), "first": In(1), "width": In(2), "column": In(_WORD * size), "out": Out(_WORD * size)}
        )

    def elaborate(self, platform):
        m = Module()
        rows = [Signal(_WORD * self.size, name=f"row_{i}", reset_less=True) for i in range(self.size)]
        last_across, across = Signal(), Signal()
        mask, column = Signal(_WORD), Signal(_WORD * self.size)
        m.d.comb += [
            across.eq(last_across ^ self.first),
            mask.eq(Mux(self.width == 0, 0xFF, Mux(self.width == 1, 0xFFFF, 0xFFFF_FFFF))),
            column.eq(self.column & mask.replicate(self.size)),
        ]
        with m.If(self.step):
            m.d.sync += last_across.eq(across)
            with m.If(across):
                m.d.sync += self.out.eq(Cat(row[:_WORD] for row in rows))
                for i, row in enumerate(rows):
                    m.d.sync += row.eq(Cat(row[_WORD:], column.word_select(i, _WORD)))
            with m.Else():
                m.d.sync += self.out.eq(rows[0])
                for row, follower in zip(rows, [*rows[1:], column], strict=True):
                    m.d.sync += row.eq(follower)
        return m
