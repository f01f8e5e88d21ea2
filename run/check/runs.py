"""Executions of a program's sections.

A section ends after its records have retired, so the order of issue separates its executions.
"""

from collections.abc import Sequence
from itertools import pairwise

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.spec.isa import RECORD_BYTES

__all__ = ["cycles_of_runs", "tile_runs"]


def tile_runs(image: Image, addresses: Sequence[int]) -> list[slice]:
    """Return each execution of a section as a slice of `addresses`, the HBM addresses of records in order of issue."""
    sections = {
        block.address + place * RECORD_BYTES: block.section for block in image.blocks for place in range(block.count)
    }
    starts, seen = [], set()
    for number, address in enumerate(addresses):
        # An execution of a section has each record once.
        if not seen or address in seen or sections[address] != sections[addresses[starts[-1]]]:
            starts.append(number)
            seen.clear()
        seen.add(address)
    return [slice(*ends) for ends in pairwise([*starts, len(addresses)])]


def cycles_of_runs(image: Image, addresses: Sequence[int], issued: Sequence[int], end: int) -> list[int]:
    """Return the duration of each execution: from its first issue to the next execution, or to `end`."""
    starts = [issued[part.start] for part in tile_runs(image, addresses)]
    return [after - before for before, after in pairwise([*starts, end])]
