"""Leading-zero count that halves: each step tests the upper half of what is left, not every bit in turn."""

from amaranth import Cat, Const, Module, Mux, Signal, Value

__all__ = ["normalise", "normalise_partly"]


def normalise(m: Module, value: Value, name: str, limit: Value | None = None) -> tuple[Value, Value]:
    """Shift `value` left until its top bit is one.

    Arguments:
        m: the module that receives the (combinational) logic.
        value: unsigned, up to 64 bits wide.
        name: prefix of the signals in waveforms.
        limit: unsigned, the most places that it is shifted by.

    Returns:
        The shifted value, of the same width, and the shift amount. A value of zero without limit stays zero; the
        amount then means nothing.
    """
    places = (len(value) - 1).bit_length()
    fewer = None if limit is None else limit[places:].any()
    value, amount, _ = normalise_partly(m, value, name, range(places), limit, fewer)
    return value, amount


def normalise_partly(
    m: Module, value: Value, name: str, places: range, limit: Value | None, fewer: Value | None
) -> tuple[Value, Value, Value | None]:
    """Take some of the steps of :func:`normalise`, so that a register may stand between them and the others.

    Arguments:
        m, value, name, limit: as there.
        places: the digits of the shift amount to find, the upper ones being known.
        fewer: whether by the digits above these the zeros are fewer than the limit.

    Returns:
        The shifted value, these digits, and whether the zeros are now known to be fewer than the limit.
    """
    width, amount = len(value), []
    for place in reversed(places):
        step = 1 << place
        empty, shifts = Signal(name=f"{name}_empty{step}"), Signal(name=f"{name}_shifts{step}")
        shifted = Signal(width, name=f"{name}_by{step}")
        m.d.comb += [
            empty.eq(~value[width - step :].any()),
            shifts.eq(empty if limit is None else empty & (fewer | limit[place])),
            shifted.eq(Mux(shifts, Cat(Const(0, step), value[: width - step]), value)),
        ]
        if limit is not None:
            less = Signal(name=f"{name}_fewer{step}")
            m.d.comb += less.eq(fewer | (limit[place] & ~empty))
            fewer = less
        value = shifted
        amount.insert(0, shifts)
    return value, Cat(amount), fewer
