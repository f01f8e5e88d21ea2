"""Detection of section runs from the records that started."""

from dataclasses import dataclass
from itertools import pairwise

import pytest

from neuroncore_rtl.kernels.control import Block
from neuroncore_rtl.run.check.runs import cycles_of_runs, tile_runs


@dataclass
class Blocks:
    """Stand-in for an image: section 0 has the records 1 and 2, section 1 the records 3 and 4."""

    blocks: tuple[Block, ...] = (
        Block(queue=1, address=128, count=1, section=0),
        Block(queue=2, address=256, count=1, section=0),
        Block(queue=1, address=384, count=2, section=1),
    )


@pytest.mark.parametrize(
    ("records", "starts"),
    [
        ([1, 2, 3, 4], [0, 2]),
        ([2, 1, 3, 4, 3, 4, 1, 2], [0, 2, 4, 6]),
        ([1, 2, 2, 1, 1, 2], [0, 2, 4]),
        # Runs may lack records of a section.
        ([4, 4, 1, 4], [0, 1, 2, 3]),
        ([], []),
    ],
)
def test_runs_and_their_cycles(records, starts):
    addresses, end = [128 * record for record in records], 100
    assert tile_runs(Blocks(), addresses) == [slice(*ends) for ends in pairwise([*starts, len(records)])]
    cycles = cycles_of_runs(Blocks(), addresses, [10 * number for number in range(len(records))], end)
    assert cycles == [after - before for before, after in pairwise([*(10 * start for start in starts), end])]
