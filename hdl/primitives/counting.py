"""Event counters."""

from collections.abc import Mapping

from amaranth import Module
from amaranth.hdl import Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Counting", "count"]


class Counting(wiring.Component):
    """Registers that add an amount each cycle; they wrap on overflow.

    Arguments:
        shape: a layout of unsigned counters.
        amounts: width of the amount by counter name; the other counters stay 0.

    Ports:
        amounts: added at the end of the cycle.
        counters: the counters.
    """

    def __init__(self, shape, amounts: Mapping[str, int]):
        super().__init__({"amounts": In(data.StructLayout(dict(amounts))), "counters": Out(shape)})

    def elaborate(self, platform):
        m = Module()
        for name, _ in self.amounts.shape():
            m.d.sync += self.counters[name].eq(self.counters[name] + self.amounts[name])
        return m


def count(m: Module, counters: data.View, name: str = "counting", /, **amounts: ValueLike) -> None:
    """Increase fields of `counters` by these amounts at the end of every cycle.

    Arguments:
        m: the module.
        counters: view of a layout of unsigned counters, driven here.
        name: name of the submodule.
        amounts: unsigned increment by field name; a one-bit event counts as 1.
    """
    amounts = {field: Value.cast(amount) for field, amount in amounts.items()}
    widths = {field: len(amount) for field, amount in amounts.items()}
    m.submodules[name] = unit = Counting(counters.shape(), widths)
    m.d.comb += [unit.amounts[field].eq(amount) for field, amount in amounts.items()]
    m.d.comb += [counters[field].eq(unit.counters[field]) for field in amounts]
