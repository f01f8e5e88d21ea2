"""Width converter between memory words and link beats, in either direction."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BYTES_BITS", "WidthConverter", "byte_beats"]

BYTES_BITS = 32
"""Bits of an operation's number of bytes."""


class WidthConverter(wiring.Component):
    """Transfers one beat of the smaller size per cycle; a beat of the larger size holds several.

    Every operation begins a new beat on both sides.

    Arguments:
        i_bytes: bytes per input beat, a power of two.
        o_bytes: bytes per output beat, a power of two.

    Ports:
        bytes: number of bytes of the operation, not 0; valid before its first beat and stable until its last one is
            accepted.
        i: the operation's beats.
        o: the same bytes, in the same cycle. `last` marks the operation's last beat, in which the bytes after the
            operation's end are undefined.
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
    """Return how many beats of `size` bytes, a power of two, hold `count` bytes."""
    return (count + (size - 1)) >> (size.bit_length() - 1)
