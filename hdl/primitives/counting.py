"""Counters: registers that add up what happens."""

from collections.abc import Mapping

from amaranth import Module
from amaranth.hdl import Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Counting", "count"]


class Counting(wiring.Component):
    """Counters that grow at the end of every cycle, and start again behind their largest values.

    Arguments:
        shape: a layout of counters, unsigned.
        amounts: bits of what is added, by the name of the counter; the others stay 0.

    Ports:
        amounts: what is added. counters: they.
    """

    def __init__(self, shape, amounts: Mapping[str, int]):
        super().__init__({"amounts": In(data.StructLayout(dict(amounts))), "counters": Out(shape)})

    def elaborate(self, platform):
        m = Module()
        for name, _ in self.amounts.shape():
            m.d.sync += self.counters[name].eq(self.counters[name] + self.amounts[name])
        return m


def count(m: Module, counters: data.View, name: str = "counting", /, **amounts: ValueLike) -> None:
    """Let fields of `counters` grow by these amounts at the end of every cycle; an event of one bit counts as 1.

    Arguments:
        m: the module, which gets a submodule of that name.
        counters: of a layout of counters, unsigned.
        amounts: what is added, unsigned, by the name of the field.
    """
    amounts = {field: Value.cast(amount) for field, amount in amounts.items()}
    widths = {field: len(amount) for field, amount in amounts.items()}
    m.submodules[name] = unit = Counting(counters.shape(), widths)
    m.d.comb += [unit.amounts[field].eq(amount) for field, amount in amounts.items()]
    m.d.comb += [counters[field].eq(unit.counters[field]) for field in amounts]
