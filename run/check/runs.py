"""Runs of a program's sections: nothing outlasts a section, so what began tells one run from the next."""

from collections.abc import Sequence
from itertools import pairwise

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.spec.isa import RECORD_BYTES

__all__ = ["cycles_of_runs", "tile_runs"]


def tile_runs(image: Image, addresses: Sequence[int]) -> list[slice]:
    """Return for each run of a section, in order, which records were its own.

    Arguments:
        image: what ran.
        addresses: of the records in HBM, in the order in which they were executed.
    """
    sections = {
        block.address + place * RECORD_BYTES: block.section for block in image.blocks for place in range(block.count)
    }
    starts, seen = [], set()
    for number, address in enumerate(addresses):
        # A section has each of its records once.
        if not seen or address in seen or sections[address] != sections[addresses[starts[-1]]]:
            starts.append(number)
            seen.clear()
        seen.add(address)
    return [slice(*ends) for ends in pairwise([*starts, len(addresses)])]


def cycles_of_runs(image: Image, addresses: Sequence[int], issued: Sequence[int], end: int) -> list[int]:
    """Return the cycles of each run of a section, from its first record to the next one's.

    Arguments:
        image, addresses: see `tile_runs`.
        issued: the cycle in which each record began, ascending.
        end: the cycle in which the program ended.
    """
    starts = [issued[part.start] for part in tile_runs(image, addresses)]
    return [after - before for before, after in pairwise([*starts, end])]
