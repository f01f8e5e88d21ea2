"""Largest elements of each row, and their positions."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import find_index8, match_replace8, max8
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows, scratch, tiles_of
from neuroncore_rtl.spec.isa.elementwise import SEARCH_ELEMENTS, VALUES8

__all__ = ["rounded_up", "topk"]


@located
def rounded_up(k: int) -> int:
    """Return the number of largest elements that `topk` searches for to find k: k, rounded up."""
    return -(-k // VALUES8) * VALUES8


@located
def topk(program: Program, values: Rows | Tensor, indices: Rows | Tensor, x: Rows | Tensor) -> None:
    """Append the search for the largest elements of each row of x, descending; ties are in order of position.

    `values` has a multiple of 8 columns in the format of x; `indices` has an integer format. NaNs are above all
    numbers; if a row has more than 8 of them, positions repeat. Raises ValueError if a row is too short, or has a
    length that the instructions cannot search.
    """
    values, indices, x = (as_rows(one, name) for one, name in ((values, "values"), (indices, "indices"), (x, "x")))
    columns, wanted = x.shape[1], values.shape[1]
    low, high = SEARCH_ELEMENTS
    if not low <= columns <= high:
        raise ValueError(f"topk: columns must be from {low} to {high}, not {columns}")
    if wanted > columns or wanted % VALUES8:
        raise ValueError(f"topk: k must be a multiple of {VALUES8} up to the {columns} columns, not {wanted}")
    # Found elements are replaced by -inf in one copy of x, where max8 searches, and by NaN in the other, where
    # find_index8 searches. With -inf in both, a found position would match again when remaining elements are -inf.
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
