"""Normalising left shift by halving: each step tests the upper half of the remaining bits."""

from amaranth import Cat, Const, Module, Mux, Signal, Value

__all__ = ["normalise", "normalise_partly"]


def normalise(m: Module, value: Value, name: str, limit: Value | None = None) -> tuple[Value, Value]:
    """Shift `value` left until its top bit is one.

    Arguments:
        m: the module that receives the (combinational) logic.
        value: unsigned, up to 64 bits wide.
        name: prefix of the signals in waveforms.
        limit: unsigned, largest shift; default: no limit.

    Returns:
        The shifted value, of the same width, and the shift amount. A zero value without limit stays zero; the amount is
            then undefined.
    """
    places = (len(value) - 1).bit_length()
    fewer = None if limit is None else limit[places:].any()
    value, amount, _ = normalise_partly(m, value, name, range(places), limit, fewer)
    return value, amount


def normalise_partly(
    m: Module, value: Value, name: str, places: range, limit: Value | None, fewer: Value | None
) -> tuple[Value, Value, Value | None]:
    """Perform some steps of `normalise`, so that a register may precede the others.

    Arguments:
        m: as in `normalise`.
        value: as in `normalise`.
        name: as in `normalise`.
        places: positions of the bits of the shift amount to find and apply; the higher bits are already applied.
        limit: as in `normalise`.
        fewer: the shift amount's higher bits are below those of the limit, so that the limit cannot be reached.

    Returns:
        The shifted value, these bits of the amount, and `fewer`, updated with these bits.
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
