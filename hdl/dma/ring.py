"""The byte ring: bytes that come at any place of a beat leave at any other, as many at a time as are wanted.

Two beats of bytes are a ring. What comes is turned until its first byte is where the ring ends; what leaves is turned
until its first byte is where the destination wants it. In between no byte moves.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import bytes_layout

__all__ = ["ByteRing", "RingRead"]


class RingRead(wiring.Signature):
    """How bytes are taken from the ring, seen from who takes them.

    Arguments:
        size: bytes of a beat.

    Members:
        level: how many there are to take.
        take, count, offset: take so many of them, at most `level`; the first one shall be at this place of the beat.
        data: the beat, in the same cycle; beside the bytes is anything.
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
    """A beat comes and another leaves in every cycle.

    Arguments:
        size: bytes of a beat.

    Ports:
        i: bytes. o: :class:`RingRead`.
    """

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

        # A whole beat is written behind the end, as there is room for one: what is too much is written over.
        turned, in_first = Signal(8 * size), Signal(8 * size)
        m.d.comb += [
            turned.eq(self._turn(self.i.payload.data, end - self.i.payload.offset)),
            in_first.eq(self._of_first_half(end)),
        ]
        with m.If(pushes):
            m.d.sync += [
                end.eq(end + self.i.payload.count),
                halves[0].eq((turned & in_first) | (halves[0] & ~in_first)),
                halves[1].eq((turned & ~in_first) | (halves[1] & in_first)),
            ]

        out_first, chosen = Signal(8 * size), Signal(8 * size)
        m.d.comb += [
            out_first.eq(self._of_first_half(first)),
            chosen.eq((halves[0] & out_first) | (halves[1] & ~out_first)),
            self.o.data.eq(self._turn(chosen, self.o.offset - first)),
        ]
        return m

    def _of_first_half(self, place: Value) -> Value:
        """Return a mask of the bytes that the beat from this place of the ring on has in the first half."""
        inner, half = place[:-1], place[-1]
        behind = (Const(-1, 8 * self.size) << Cat(Const(0, 3), inner))[: 8 * self.size]
        return behind ^ half.replicate(8 * self.size)

    def _turn(self, beat: Value, places: Value) -> Value:
        """Return a beat whose byte n is at place n + `places`, modulo its size."""
        down = (-places)[: (self.size - 1).bit_length()]
        return (Cat(beat, beat) >> Cat(Const(0, 3), down))[: 8 * self.size]
