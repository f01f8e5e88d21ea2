"""Beats of one size become beats of another: of the memory and of the link, in either direction."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BYTES_BITS", "WidthConverter", "byte_beats"]

BYTES_BITS = 32
"""Of the bytes of an operation."""


class WidthConverter(wiring.Component):
    """A beat of the larger size stands for several of the smaller one; one of the smaller size a cycle.

    Every operation begins a new beat on both sides.

    Arguments:
        i_bytes, o_bytes: of a beat; powers of two.

    Ports:
        bytes: of the operation, not 0; there before its first beat is, and stays until its last one is taken.
        i: its beats. o: the same bytes, without latency. last: o is the last beat. What lies beyond the operation in it
            is anything.
    """

    def __init__(self, i_bytes: int, o_bytes: int):
        self.i_bytes = i_bytes
        self.o_bytes = o_bytes
        super().__init__(
            {
                "bytes": In(BYTES_BITS),
                "i": In(stream.Signature(8 * i_bytes)),
                "o": Out(stream.Signature(data.StructLayout({"data": 8 * o_bytes, "last": 1}))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        small, large = sorted((self.i_bytes, self.o_bytes))
        parts, bits = large // small, 8 * small
        index = Signal(range(byte_beats(1 << BYTES_BITS, small)))
        steps, last, boundary = (Signal(name=name) for name in ("steps", "last", "boundary"))
        part = Signal(max(1, (parts - 1).bit_length()))
        m.d.comb += [
            last.eq(index == byte_beats(self.bytes, small) - 1),
            part.eq(index if parts > 1 else 0),
            boundary.eq(last | (part == parts - 1)),
            self.o.payload.last.eq(last),
        ]
        with m.If(steps):
            m.d.sync += index.eq(Mux(last, 0, index + 1))

        if self.i_bytes >= self.o_bytes:
            whole = self.i.payload
            m.d.comb += [
                self.o.valid.eq(self.i.valid),
                self.o.payload.data.eq(Array(whole[bits * n : bits * (n + 1)] for n in range(parts))[part]),
                steps.eq(self.o.valid & self.o.ready),
                self.i.ready.eq(steps & boundary),
            ]
            return m
        held = [Signal(bits, name=f"held{n}", reset_less=True) for n in range(parts - 1)]
        m.d.comb += [
            self.o.valid.eq(self.i.valid & boundary),
            self.o.payload.data.eq(
                Cat(*(Mux(part == n, self.i.payload, word) for n, word in enumerate(held)), self.i.payload)
            ),
            self.i.ready.eq(~boundary | self.o.ready),
            steps.eq(self.i.valid & self.i.ready),
        ]
        for n, word in enumerate(held):
            with m.If(steps & (part == n)):
                m.d.sync += word.eq(self.i.payload)
        return m


def byte_beats(count, size: int):
    """Return how many beats of `size` bytes (a power of two) so many bytes go as."""
    return (count + (size - 1)) >> (size.bit_length() - 1)
