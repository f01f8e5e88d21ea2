"""The order in which cells are evaluated, and what need not be evaluated at all.

A multiplexer whose select is the same for all instances is a branch: what it alone needs on one side is evaluated only
if that side is taken. So each cell has a *scope*: the innermost branch that holds all of its uses.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuroncore_rtl.run.lanes.netlist import Bit, Cell, Unsupported

__all__ = ["Scope", "Switch", "schedule", "switch_of"]

GUARD = "guard"
"""In place of a multiplexer, where a scope is that of a condition."""

BRANCH_CELLS = 6
"""Cells that a branch must save at least; else both sides are evaluated, and one is taken."""


SWITCH_CASES = 4
"""Cases from which on a multiplexer whose selects are comparisons of one value with constants is a switch."""


@dataclass(frozen=True)
class Switch:
    """A multiplexer's selects as one value: it takes side n where the value is `values[n]`."""

    bits: tuple[Bit, ...]
    values: tuple[int, ...]


def switch_of(cell: Cell, cells: Mapping[str, Cell]) -> Switch | None:
    """Return a multiplexer's selects as a switch, if they are one."""
    if cell.kind != "pmux" or len(cell.operands["S"]) < SWITCH_CASES:
        return None
    found: dict[tuple[Bit, ...], list[int]] = {}
    for select in cell.operands["S"]:
        compare = cells.get(select[0]) if isinstance(select, tuple) else None
        if compare is None or compare.kind not in ("eq", "logic_not"):
            return None
        a, b = compare.operands["A"], compare.operands.get("B", [0] * len(compare.operands["A"]))
        if all(isinstance(bit, int) for bit in a):
            a, b = b, a
        if len(a) != len(b) or not all(isinstance(bit, int) for bit in b) or len(a) > 32:
            return None
        found.setdefault(tuple(a), []).append(sum(bit << n for n, bit in enumerate(b) if isinstance(bit, int)))
    (bits, values), *others = found.items()
    return None if others or len(set(values)) < len(values) else Switch(bits, tuple(values))


@dataclass
class Scope:
    """A side of a branch: the cells that are evaluated only there, in order.

    Attributes:
        mux: the multiplexer, None for the outermost scope. side: of its selects the one that is set, -1 if none is.
        cells: names. branches: of the multiplexers among them that are branches, the scopes by side.
        guarded: of the outermost scope, the scopes of what is needed only under conditions of its own, by key.
    """

    parent: "Scope | None" = None
    mux: str | None = None
    side: int = 0
    cells: list[str] = field(default_factory=list)
    branches: dict[str, dict[int, "Scope"]] = field(default_factory=dict)
    guarded: dict[Any, "Scope"] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1


def _common(a: Scope, b: Scope) -> Scope:
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None, "the outermost scope holds all others"
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a


def _ordered(cells: Mapping[str, Cell], sinks: Iterable[Bit]) -> list[str]:
    """Return the cells that sinks depend on, each behind those that it depends on."""
    order: list[str] = []
    state: dict[str, int] = {}
    for sink in sinks:
        if not isinstance(sink, tuple) or sink[0] not in cells or sink[0] in state:
            continue
        stack = [(sink[0], iter(cells[sink[0]].bits()))]
        state[sink[0]] = 1
        while stack:
            name, bits = stack[-1]
            for bit in bits:
                if not isinstance(bit, tuple) or bit[0] not in cells:
                    continue
                if state.get(bit[0]) == 1:
                    raise Unsupported(f"{bit[0]} depends on itself within a cycle")
                if bit[0] not in state:
                    state[bit[0]] = 1
                    stack.append((bit[0], iter(cells[bit[0]].bits())))
                    break
            else:
                stack.pop()
                state[name] = 2
                order.append(name)
    return order


def schedule(
    cells: Mapping[str, Cell],
    sinks: Iterable[Bit],
    uniform: Callable[[Bit], bool],
    guarded: Mapping[Any, Iterable[Bit]] | None = None,
    everything: Mapping[str, Cell] | None = None,
) -> Scope:
    """Return the outermost scope of what sinks depend on.

    Arguments:
        cells: those that may be evaluated; all else has its value.
        sinks: bits that are needed whatever happens.
        uniform: whether a bit is the same for all instances.
        guarded: by key, bits that are needed only if something happens that the caller knows; each has a scope.
        everything: all cells, those included that have been evaluated already; `cells` if None.

    Raises:
        Unsupported: cells depend on each other in a circle.
    """
    sinks = list(sinks)
    guarded = {key: list(bits) for key, bits in (guarded or {}).items()}
    order = _ordered(cells, [*sinks, *(bit for bits in guarded.values() for bit in bits)])
    root = Scope()
    root.guarded = {key: Scope(root, GUARD) for key in guarded}
    scopes: dict[str, Scope] = {}
    sides: dict[tuple[str, int], Scope] = {}
    switches = {name: switch_of(cells[name], everything or cells) for name in order}

    def use(bits: Iterable[Bit], scope: Scope) -> None:
        for source in {bit[0] for bit in bits if isinstance(bit, tuple)}:
            if source in cells:
                scopes[source] = _common(scopes[source], scope) if source in scopes else scope

    use(sinks, root)
    for key, bits in guarded.items():
        use(bits, root.guarded[key])
    for name in reversed(order):
        if name not in scopes:  # only selects of a switch depend on it
            continue
        cell, scope = cells[name], scopes[name]
        if cell.kind in ("mux", "pmux") and all(map(uniform, cell.operands["S"])):
            switch = switches[name]
            use(switch.bits if switch else cell.operands["S"], scope)
            for side, bits in _sides(cell):
                sides[name, side] = Scope(scope, name, side)
                use(bits, sides[name, side])
        else:
            use(cell.bits(), scope)

    order = [name for name in order if name in scopes]
    sizes: dict[int, int] = {}
    for name in order:
        around: Scope | None = scopes[name]
        while around is not None:
            sizes[id(around)] = sizes.get(id(around), 0) + 1
            around = around.parent
    worth = {
        name
        for name in order
        if (name, -1) in sides
        and (
            switches[name]
            or sum(sizes.get(id(sides[name, side]), 0) for side, _ in _sides(cells[name])) >= BRANCH_CELLS
        )
    }
    for name in order:
        scope = scopes[name]
        while scope.mux not in (None, GUARD) and scope.mux not in worth:
            assert scope.parent is not None, "the outermost scope has no multiplexer"
            scope = scope.parent
        scope.cells.append(name)
        if name in worth:
            scope.branches[name] = {side: sides[name, side] for side, _ in _sides(cells[name])}
    return root


def _sides(cell: Cell) -> list[tuple[int, list[Bit]]]:
    """Return the sides of a multiplexer with the bits of each."""
    width, b = cell.width, cell.operands["B"]
    cases = [(side, b[side * width : (side + 1) * width]) for side in range(len(cell.operands["S"]))]
    return [*cases, (-1, cell.operands["A"])]
