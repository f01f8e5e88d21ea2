"""Counters: registers that add up what happens."""

from amaranth import Module
from amaranth.hdl import ValueLike
from amaranth.lib import data

__all__ = ["count"]


def count(m: Module, counters: data.View, **amounts: ValueLike) -> None:
    """Let fields of `counters` grow by these amounts at the end of every cycle; an event of one bit counts as 1.

    Arguments:
        m: the module whose `sync` domain counts.
        counters: a register of a layout of counters.
        amounts: what is added, by the name of the field.
    """
    m.d.sync += [counters[name].eq(counters[name] + amount) for name, amount in amounts.items()]
