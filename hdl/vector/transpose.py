"""Transposes square blocks whose columns arrive and leave one a step.

A square of words that shifts either along the rows or along the columns needs no second copy: while a block leaves in
the direction across the one in which it came, the next one follows it in that direction.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Transposer"]

_WORD = 32


class Transposer(wiring.Component):
    """Word j of the column that comes as the i-th of a block becomes word i of the column that leaves as the j-th.

    Arguments:
        size: columns of a block, and words of a column.

    Ports:
        step: a column enters, and one of the block before leaves.
        first: with `step`, the column is the first of its block.
        width: log2 of the bytes of the words that matter; above it they are taken for zero.
        column: `size` words, word 0 lowest.
        out: the column that left, a cycle after its step.
    """

    LATENCY = 1
    """Cycles from a step to its column."""

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
