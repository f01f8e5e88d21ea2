"""Split of a chunk into beats."""

from amaranth import Cat, Const, Module, Mux, Signal, Value

__all__ = ["beat_address", "next_beat"]


def next_beat(m: Module, size: int, address: Value, count: Value, steps: Value) -> tuple[Signal, Signal, Signal]:
    """Return a chunk's next beat: offset of its first byte, number of bytes, and whether it is the last beat.

    Arguments:
        m: module that gets the logic.
        size: bytes per beat, a power of two.
        address: address of the chunk's first byte; stable until its last beat is done.
        count: bytes of the chunk; stable until its last beat is done.
        steps: the beat is done at the end of this cycle.
    """
    begun, left, remaining = Signal(), Signal(len(count), reset_less=True), Signal(len(count))
    offset, ends, taken, last = Signal(range(size)), Signal(range(size + 1)), Signal(range(size + 1)), Signal()
    m.d.comb += [
        offset.eq(Mux(begun, 0, address[: len(offset)])),
        ends.eq(size - offset),
        remaining.eq(Mux(begun, left, count)),
        last.eq(remaining <= ends),
        taken.eq(Mux(last, remaining, ends)),
    ]
    with m.If(steps):
        m.d.sync += [begun.eq(~last), left.eq(remaining - taken)]
    return offset, taken, last


def beat_address(address: Value, size: int) -> Value:
    """Return an address rounded down to a multiple of `size`, a power of two."""
    bits = (size - 1).bit_length()
    return Cat(Const(0, bits), address[bits:])
