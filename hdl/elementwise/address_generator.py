"""Address generator: an affine function of up to four indices, one element per step, without a multiplier."""

from amaranth import Array, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.isa.access import DIMENSIONS

__all__ = ["ElementwiseAddressGenerator"]


class ElementwiseAddressGenerator(wiring.Component):
    """Affine counter; a register per dimension holds the value at the start of the lower dimensions' current row.

    A move along a dimension adds its step to that register, and restarts the lower dimensions from the sum.

    Arguments:
        width: bits of the value `o`, which wraps on overflow.
        step_width: bits of a step, two's complement.

    Ports:
        load, start: restart with the value `start`.
        advance, dimension: increment the index of `dimension`, and reset the indices of the lower dimensions to 0.
        steps: increment of `o` per increment of the index, for each dimension.
        o: `start` plus the sum of index times step over all dimensions.
    """

    def __init__(self, width: int, step_width: int):
        self.width = width
        self.step_width = step_width
        super().__init__(
            {
                "load": In(1),
                "start": In(width),
                "advance": In(1),
                "dimension": In(range(DIMENSIONS)),
                "steps": In(signed(step_width)).array(DIMENSIONS),
                "o": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows = [Signal(self.width, name=f"row{d}", reset_less=True) for d in range(DIMENSIONS)]
        value = Signal(self.width)
        m.d.comb += [
            value.eq(Array(rows)[self.dimension] + Array(self.steps)[self.dimension]),
            self.o.eq(rows[0]),
        ]
        for d, row in enumerate(rows):
            along = self.advance & (self.dimension >= d) if d else self.advance
            with m.If(self.load | along):
                m.d.sync += row.eq(Mux(self.load, self.start, value))
        return m
