"""Order of cells, and multiplexers that are switches."""

import pytest

from neuroncore_rtl.run.lanes.netlist import Cell
from neuroncore_rtl.run.lanes.schedule import Switch, schedule, switch_of

WORD = [("word", place) for place in range(3)]


def _pmux(constants: list[list[int]], signed: frozenset[str]) -> dict[str, Cell]:
    cells = {f"is{n}": Cell(f"is{n}", "eq", 1, {"A": WORD, "B": [*b]}, signed) for n, b in enumerate(constants)}
    operands = {"A": [0], "B": [("side", n) for n in range(len(constants))], "S": [(name, 0) for name in cells]}
    return cells | {"chosen": Cell("chosen", "pmux", 1, operands)}


@pytest.mark.parametrize(
    ("signed", "found"), [(frozenset(), Switch(tuple(WORD), (7, 3, 1, 0))), (frozenset("AB"), None)]
)
def test_constant_without_leading_zeros_is_a_case_unless_its_sign_counts(signed, found):
    cells = _pmux([[1, 1, 1], [1, 1], [1], [0]], signed)
    assert switch_of(cells["chosen"], cells) == found


def test_chains_of_four_results_alternate():
    """Each cell of a chain reads the one before it; the last chain begins when the others have ended."""
    chains = [[f"{chain}{place}" for place in range(3)] for chain in "abcde"]
    cells = {}
    for chain in chains:
        for before, name in zip(["input", *chain], chain, strict=False):
            cells[name] = Cell(name, "not", 1, {"A": [(before, 0)]})
    order = schedule(cells, [(chain[-1], 0) for chain in chains], lambda bit: False).cells
    assert order == [*"a0 b0 c0 d0 a1 b1 c1 d1 a2 b2 c2 d2 e0 e1 e2".split()]
