"""Byte ring: realigns bytes from any offset in a beat to any other, in any amount.

The ring holds two beats. Input is rotated so that its first byte follows the last byte of the ring; output is rotated
to the offset that the destination requests. Stored bytes do not move.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import bytes_layout

__all__ = ["ByteRing", "RingRead"]


class RingRead(wiring.Signature):
    """Read side of the ring, seen from the reader.

    Members:
        level: bytes available.
        take: removes `count` bytes.
        count: at most `level`.
        offset: offset in the beat of the first byte.
        data: the beat, in the same cycle; undefined outside the `count` bytes.
    """

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "level": In(range(2 * size + 1)),
                "take": Out(1),
                "count": Out(range(size + 1)),
                "offset": Out(range(size)),
                "data": In(8 * size),
            }
        )


class ByteRing(wiring.Component):
    """Ring buffer of two beats: accepts one beat of `size` bytes and delivers another in every cycle."""

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "i": In(stream.Signature(bytes_layout(size))),
                "o": In(RingRead(size)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        size = self.size
        halves = [Signal(8 * size, name=f"half{n}", reset_less=True) for n in range(2)]
        first, end = (Signal(range(2 * size), name=name) for name in ("first", "end"))
        left, pushes = Signal.like(self.o.level), Signal()
        m.d.comb += [
            left.eq(self.o.level - Mux(self.o.take, self.o.count, 0)),
            self.i.ready.eq(left <= size),
            pushes.eq(self.i.valid & self.i.ready),
        ]
        m.d.sync += [
            self.o.level.eq(left + Mux(pushes, self.i.payload.count, 0)),
            first.eq(first + Mux(self.o.take, self.o.count, 0)),
        ]

        # A whole beat is written after the last byte: the ring has room for it, and the next write overwrites its
        # unused bytes.
        turned, in_first = Signal(8 * size), Signal(8 * size)
        m.d.comb += [
            turned.eq(self._rotate(self.i.payload.data, end - self.i.payload.offset)),
            in_first.eq(self._first_half_mask(end)),
        ]
        with m.If(pushes):
            m.d.sync += [
                end.eq(end + self.i.payload.count),
                halves[0].eq((turned & in_first) | (halves[0] & ~in_first)),
                halves[1].eq((turned & ~in_first) | (halves[1] & in_first)),
            ]

        out_first, chosen = Signal(8 * size), Signal(8 * size)
        m.d.comb += [
            out_first.eq(self._first_half_mask(first)),
            chosen.eq((halves[0] & out_first) | (halves[1] & ~out_first)),
            self.o.data.eq(self._rotate(chosen, self.o.offset - first)),
        ]
        return m

    def _first_half_mask(self, place: Value) -> Value:
        """Return the mask of bytes in the ring's first half, for a beat of bytes that starts at `place` of the ring."""
        inner, half = place[:-1], place[-1]
        behind = (Const(-1, 8 * self.size) << Cat(Const(0, 3), inner))[: 8 * self.size]
        return behind ^ half.replicate(8 * self.size)

    def _rotate(self, beat: Value, places: Value) -> Value:
        """Return `beat` rotated: byte n moves to byte n + `places`, modulo the beat's size."""
        down = (-places)[: (self.size - 1).bit_length()]
        return (Cat(beat, beat) >> Cat(Const(0, 3), down))[: 8 * self.size]
