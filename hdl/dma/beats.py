"""A chunk as beats: which bytes of the next one are its own."""

from amaranth import Cat, Const, Module, Mux, Signal, Value

__all__ = ["beat_address", "next_beat"]


def next_beat(m: Module, size: int, address: Value, count: Value, steps: Value) -> tuple[Signal, Signal, Signal]:
    """Return of a chunk's next beat the place of its first byte, how many bytes are in it, and whether it is the last.

    Arguments:
        m: gets the logic.
        size: bytes of a beat, a power of two.
        address, count: of the chunk's bytes; they stay until its last beat is done.
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
    """Return the address of the beat of `size` bytes, a power of two, that an address lies in."""
    bits = (size - 1).bit_length()
    return Cat(Const(0, bits), address[bits:])
