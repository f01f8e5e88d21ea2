"""A right shift that knows whether it lost anything."""

from amaranth import Cat, Module, Mux, Signal, Value

__all__ = ["align"]


def align(m: Module, value: Value, places: Value, name: str) -> tuple[Value, Value]:
    """Shift `value` right.

    Arguments:
        m: the module that receives the (combinational) logic.
        value: unsigned.
        places: unsigned, the shift amount.
        name: prefix of the signals in waveforms.

    Returns:
        The shifted value, of the same width, and whether one of the bits that left it was set.
    """
    lost = Signal(name=f"{name}_lost")
    losses = []
    for place in range(len(places)):
        step = 1 << place
        losses.append(places[place] & value[:step].any())
        shifted = Signal(len(value), name=f"{name}_right{step}")
        m.d.comb += shifted.eq(Mux(places[place], value[step:], value))
        value = shifted
    m.d.comb += lost.eq(Cat(losses).any())
    return value, lost
