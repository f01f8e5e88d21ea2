"""Leading-zero count that halves: each step tests the upper half of what is left, not every bit in turn."""

from amaranth import Cat, Const, Module, Mux, Signal, Value

__all__ = ["normalise"]


def normalise(m: Module, value: Value, name: str, sentinel: Value | None = None) -> tuple[Value, Value]:
    """Shift `value` left until its top bit is one.

    Arguments:
        m: the module that receives the (combinational) logic.
        value: unsigned, up to 32 bits wide.
        name: prefix of the signals in waveforms.
        sentinel: of the same width; a bit set here stops the shift when it arrives at the top.

    Returns:
        The shifted value, of the same width, and the shift amount. A value of zero without sentinel stays zero; the
        amount then means nothing.
    """
    width = len(value)
    step = 1 << (width - 1).bit_length() - 1
    probe = value if sentinel is None else value | sentinel
    amount = []
    while step:
        empty = Signal(name=f"{name}_empty{step}")
        shifted = Signal(width, name=f"{name}_by{step}")
        m.d.comb += [
            empty.eq(~probe[width - step :].any()),
            shifted.eq(Mux(empty, Cat(Const(0, step), value[: width - step]), value)),
        ]
        if sentinel is None:
            probe = shifted
        else:
            probed = Signal(width, name=f"{name}_probe{step}")
            m.d.comb += probed.eq(Mux(empty, Cat(Const(0, step), probe[: width - step]), probe))
            probe = probed
        value = shifted
        amount.insert(0, empty)
        step //= 2
    return value, Cat(amount)
