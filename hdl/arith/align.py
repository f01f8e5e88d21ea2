"""Right shift with a sticky flag for the bits shifted out."""

from amaranth import Cat, Module, Mux, Signal, Value

__all__ = ["align"]


def align(m: Module, value: Value, places: Value, name: str) -> tuple[Value, Value]:
    """Return an unsigned value shifted right, of the same width, and whether any bit shifted out was set."""
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
