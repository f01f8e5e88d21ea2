"""The largest elements of each row, and where they are."""

from neuroncore_rtl.kernels.program import Program, Rows, scratch, tiles_of
from neuroncore_rtl.kernels.program.instructions import find_index8, match_replace8, max8
from neuroncore_rtl.spec.isa.elementwise import SEARCH_ELEMENTS, VALUES8

__all__ = ["rounded_up", "topk"]


def rounded_up(k: int) -> int:
    """Return the elements that `topk` finds when it must find k."""
    return -(-k // VALUES8) * VALUES8


def topk(program: Program, values: Rows, indices: Rows, x: Rows) -> None:
    """Append the search for the largest elements of each row of x, descending, equal ones in the order of their places.

    Arguments:
        values, indices: what was found: a multiple of 8 columns each, of x's format and an integer one.

    Of more than 8 NaN in a row, which are above all numbers, places are named again.

    Raises:
        ValueError: if a row has fewer elements than are looked for, or more or fewer than the instructions search.
    """
    columns, wanted = x.shape[1], values.shape[1]
    low, high = SEARCH_ELEMENTS
    if not low <= columns <= high:
        raise ValueError(f"topk: columns must be from {low} to {high}, not {columns}")
    if wanted > columns or wanted % VALUES8:
        raise ValueError(f"topk: k must be a multiple of {VALUES8} up to the {columns} columns, not {wanted}")
    # What was found is below all that is left in one copy of x, and equal to none of it in the other one: marked with
    # -inf in both, it would be found again among elements that are -inf.
    rests, places = (scratch(program.space, name, x, fmt=x.format) for name in ("rest", "places"))
    for tile, best, where, rest, place in tiles_of(x, values, indices, rests, places):
        left, unfound = tile, tile
        for first in range(0, wanted, VALUES8):
            found = best[:, first : first + VALUES8]
            program.append(max8(found, left))
            program.append(find_index8(where[:, first : first + VALUES8], unfound, found))
            if first + VALUES8 < wanted:
                program.append(match_replace8(rest, left, found, float("-inf")))
                program.append(match_replace8(place, unfound, found, float("nan")))
                left, unfound = rest, place
