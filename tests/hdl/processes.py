"""Combinational logic in parts, for Amaranth's simulator.

All combinational statements of a module are one process to it, which runs as a whole when any of their inputs changes.
In parts that share no output each runs for inputs of its own: tests of queues, links, the elementwise front end and the
receive path of collectives take a fifth less.
"""

from collections.abc import Iterable

from amaranth.hdl import Fragment
from amaranth.hdl._ast import SignalKey

__all__ = ["in_parts"]


def in_parts(fragment: Fragment) -> Fragment:
    """Return a fragment, changed so that what it and those below it drive by combinational logic is apart."""
    for below, *_ in fragment.subfragments:
        in_parts(below)
    for statements in _parts(fragment.statements.pop("comb", ())):
        part = Fragment()
        part.add_statements("comb", *statements)
        fragment.add_subfragment(part)
    return fragment


def _parts(statements: Iterable) -> list[list]:
    """Return statements, in their order, as parts that drive no signal which another one drives."""
    part_of: dict[SignalKey, dict] = {}  # a part has its statements by number
    silent = {}  # assertions drive none
    for number, statement in enumerate(statements):
        signals = [SignalKey(signal) for signal in statement._lhs_signals()]
        first, *others = {id(part): part for part in map(part_of.get, signals) if part}.values() or [{}]
        for part in others:
            first |= part
            part_of |= {signal: first for signal, old in part_of.items() if old is part}
        part_of |= dict.fromkeys(signals, first)
        (first if signals else silent)[number] = statement
    parts = {id(part): part for part in (*part_of.values(), silent) if part}
    return [[part[number] for number in sorted(part)] for part in parts.values()]
