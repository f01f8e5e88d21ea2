"""Evaluation order of cells, and cells that are evaluated only conditionally.

A multiplexer with a uniform select is a branch: cells that only one side needs are evaluated only if that side is
selected. Each cell has a *scope*: the innermost branch that contains all of its uses.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from neuroncore_rtl.run.lanes.netlist import Bit, Cell, Unsupported

__all__ = ["Scope", "Switch", "schedule", "switch_of"]

GUARD = "guard"
"""Replaces a multiplexer's name in the scope of cells that only a condition of the caller needs."""

CHAINS = 4
"""Number of results whose cells alternate: cells of different results do not depend on each other."""

BRANCH_CELLS = 6
"""Minimum cells that a branch must save; otherwise both sides are evaluated."""

SWITCH_CASES = 4
"""Minimum cases of a switch: a multiplexer with selects that compare one value with constants."""


@dataclass(frozen=True)
class Switch:
    """Word that controls a multiplexer: side n is selected when the word, all of `bits`, has the value `values[n]`."""

    bits: tuple[Bit, ...]
    values: tuple[int, ...]


def switch_of(cell: Cell, cells: Mapping[str, Cell]) -> Switch | None:
    """Return the switch that controls a multiplexer; None if its selects do not compare one word with constants."""
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
        narrow = len(b) < len(a) and compare.signed != {"A", "B"}  # Yosys removes leading zeros of a constant
        if (len(a) != len(b) and not narrow) or not all(isinstance(bit, int) for bit in b) or len(a) > 32:
            return None
        found.setdefault(tuple(a), []).append(sum(bit << n for n, bit in enumerate(b) if isinstance(bit, int)))
    (bits, values), *others = found.items()
    return None if others or len(set(values)) < len(values) else Switch(bits, tuple(values))


@dataclass
class Scope:
    """One side of a branch: the cells that are evaluated only there, in order.

    Attributes:
        parent, mux: enclosing scope, and the multiplexer; None for the outermost scope.
        side: index of the select that is set, -1 if none is.
        branches: scopes by side, for the multiplexers in `cells` that are branches.
        guarded: in the outermost scope, scopes needed only under the caller's conditions, by key.
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


def _chain(cells: Mapping[str, Cell], sink: str, done: Set[str]) -> list[str]:
    """Return the names of `sink` and the cells that it depends on, but those `done`, each after the cells it reads."""
    chain: list[str] = []
    finished = {sink: False}
    stack = [(sink, iter(cells[sink].bits()))]
    while stack:
        name, bits = stack[-1]
        for bit in bits:
            if not isinstance(bit, tuple) or bit[0] not in cells or bit[0] in done:
                continue
            if finished.get(bit[0]) is False:
                raise Unsupported(f"{bit[0]} depends on itself within a cycle")
            if bit[0] not in finished:
                finished[bit[0]] = False
                stack.append((bit[0], iter(cells[bit[0]].bits())))
                break
        else:
            stack.pop()
            finished[name] = True
            chain.append(name)
    return chain


def _ordered(cells: Mapping[str, Cell], sinks: Iterable[Bit]) -> list[str]:
    """Return the names of the cells that the bits `sinks` depend on, each after the cells that it reads.

    The chains of `CHAINS` sinks alternate: each cell is at its first place in one of them, which is after the places of
    the cells that it reads.
    """
    order: dict[str, None] = {}
    sources = iter(dict.fromkeys(sink[0] for sink in sinks if isinstance(sink, tuple) and sink[0] in cells))
    while some := [*islice((source for source in sources if source not in order), CHAINS)]:
        places: dict[str, int] = {}
        for source in some:
            for place, name in enumerate(_chain(cells, source, order.keys())):
                places[name] = min(place, places.get(name, place))
        order |= dict.fromkeys(sorted(places, key=places.__getitem__))
    return [*order]


def schedule(
    cells: Mapping[str, Cell],
    sinks: Iterable[Bit],
    uniform: Callable[[Bit], bool],
    guarded: Mapping[Any, Iterable[Bit]] | None = None,
    everything: Mapping[str, Cell] | None = None,
) -> Scope:
    """Return the outermost scope of the cells that sinks depend on; Unsupported if they form a combinational loop.

    Arguments:
        cells: cells to evaluate; all other sources have their values.
        sinks: bits that are always needed.
        uniform: returns whether a bit is equal in all instances.
        guarded: bits needed only under a condition of the caller, by key; each key gets a scope.
        everything: all cells, including those evaluated before; None: `cells`.
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
        if name not in scopes:  # used only by selects of a switch
            continue
        cell, scope = cells[name], scopes[name]
        if cell.kind in ("mux", "pmux") and all(map(uniform, cell.operands["S"])):
            switch = switches[name]
            use(switch.bits if switch else cell.operands["S"], scope)
            for side in _sides(cell):
                sides[name, side] = Scope(scope, name, side)
                use(cell.case(side), sides[name, side])
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
        and (switches[name] or sum(sizes.get(id(sides[name, n]), 0) for n in _sides(cells[name])) >= BRANCH_CELLS)
    }
    for name in order:
        scope = scopes[name]
        while scope.mux not in (None, GUARD) and scope.mux not in worth:
            assert scope.parent is not None, "the outermost scope has no multiplexer"
            scope = scope.parent
        scope.cells.append(name)
        if name in worth:
            scope.branches[name] = {side: sides[name, side] for side in _sides(cells[name])}
    return root


def _sides(cell: Cell) -> list[int]:
    """Return the numbers of a multiplexer's selects, and -1 for its default."""
    return [*range(len(cell.operands["S"])), -1]
