"""Bytes that an instruction reads and writes, derived independently of the kernels' analysis."""

from itertools import product

import numpy as np

from neuroncore_rtl.run.check.touches import Touch, touches_of
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.isa import Instruction, LoadStationary, MultiplyMoving, Storage

__all__ = ["touched"]

Cells = set[tuple[Storage, int, int]]


def touched(instruction: Instruction, config: Config) -> tuple[Cells, Cells]:
    """Return the sets of (storage, partition, byte) that a legal instruction reads and writes.

    A LoadStationary reads whole blocks of LOAD_COLUMNS columns. An accumulation does not count as a read of PSUM,
    because only the tensor engine writes PSUM between the summands.
    """
    touches = touches_of(instruction, config)
    if isinstance(instruction, MultiplyMoving):
        touches = [touch for touch in touches if touch.writes or touch.storage == Storage.SBUF]
    cells = tuple(set().union(*(_cells(t) for t in touches if t.writes == writes)) for writes in (False, True))
    if isinstance(instruction, LoadStationary):
        octets = -(-instruction.m // LOAD_COLUMNS) * LOAD_COLUMNS * instruction.format.bits // 8
        first, rows = instruction.address, range(instruction.row, instruction.row + instruction.k)
        cells[0].update(product([Storage.SBUF], rows, range(first, first + octets)))
    return cells


def _cells(touch: Touch) -> Cells:
    octets = (touch.starts[:, np.newaxis] + np.arange(touch.length)).ravel().tolist()
    return set(product([touch.storage], touch.partitions, octets))
