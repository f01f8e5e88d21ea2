"""Instructions of the vector and the scalar engine in program order, with what each must wait for.

The engines run at the same time. Within an engine instructions start in order, and with `overlap` before the earlier
ones have written all; between engines nothing holds order but a wait. Both are worked out here, from the bytes that
instructions touch, so that the result is that of running them one after the other.
"""

from dataclasses import dataclass, replace

import numpy as np

from kernels.footprint import Footprint, Region
from spec.config import Config
from spec.isa import SCALAR_OPCODES, Elementwise
from spec.isa.legality import check

__all__ = ["Entry", "Sequence"]

ENGINES = ("vector", "scalar")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An instruction in its place.

    Arguments:
        engine: "vector" or "scalar".
        instruction: with `overlap` as the instructions before it allow.
        vector, scalar: instructions of either engine that must have retired before it may start; 0 for its own, which
            starts instructions in order.
    """

    engine: str
    instruction: Elementwise
    vector: int = 0
    scalar: int = 0


class Sequence:
    """A program under construction.

    Arguments:
        config: the machine's parameters.

    Attributes:
        entries: what was appended, in program order.
    """

    def __init__(self, config: Config):
        self.config = config
        self.entries: list[Entry] = []
        self._reads = {engine: _History() for engine in ENGINES}
        self._writes = {engine: _History() for engine in ENGINES}
        self._counts = dict.fromkeys(ENGINES, 0)
        self._settled = dict.fromkeys(ENGINES, 0)  # instructions that are done when the next one starts
        self._awaited = dict.fromkeys(ENGINES, 0)  # of the other engine, by the last instruction

    def append(self, instruction: Elementwise) -> Entry:
        """Append an instruction, whose own `overlap` does not matter; return its entry.

        Raises:
            ValueError: if it is not legal, or writes what it also reads other than element for element: a tensor that
                is written must be the same as a source or apart from it. Scalars are read before anything is written.
        """
        check(instruction, self.config)
        footprint = Footprint(instruction, self.config)
        _check_overlap(footprint, instruction)
        engine = "scalar" if instruction.opcode in SCALAR_OPCODES else "vector"
        other = "vector" if engine == "scalar" else "scalar"

        reads, writes = footprint.reads, footprint.writes
        independent = self._writes[engine].last_overlap(reads, self._settled[engine]) is None
        if not independent:
            self._settled[engine] = self._counts[engine]
        awaited = self._awaited[engine]
        for history, regions in ((self._writes[other], reads + writes), (self._reads[other], writes)):
            number = history.last_overlap(regions, awaited)
            awaited = awaited if number is None else number + 1
        self._awaited[engine] = awaited

        self._reads[engine].add(self._counts[engine], reads)
        self._writes[engine].add(self._counts[engine], writes)
        self._counts[engine] += 1
        entry = Entry(engine=engine, instruction=replace(instruction, overlap=independent), **{other: awaited})
        self.entries.append(entry)
        return entry


class _History:
    """Regions by the number of the instruction that touches them, with their boxes in an array to search quickly."""

    def __init__(self):
        self._regions: list[Region] = []
        self._boxes = np.zeros((64, 6), np.int64)

    def add(self, number: int, regions: list[Region]) -> None:
        for region in regions:
            if len(self._regions) == len(self._boxes):
                self._boxes = np.concatenate((self._boxes, np.zeros_like(self._boxes)))
            low, high = region.span
            end = region.partition + region.partitions
            self._boxes[len(self._regions)] = number, region.storage, region.partition, end, low, high
            self._regions.append(region)

    def last_overlap(self, regions: list[Region], first: int) -> int | None:
        """Return the number, not below `first`, of the last instruction that touches one of `regions`."""
        numbers, storage, start, end, low, high = self._boxes[: len(self._regions)].T
        begin = int(np.searchsorted(numbers, first))
        found = None
        for region in regions:
            near = (
                (storage[begin:] == region.storage) & (low[begin:] < region.span[1]) & (high[begin:] > region.span[0])
            )
            near &= (start[begin:] < region.partition + region.partitions) & (end[begin:] > region.partition)
            for place in reversed(begin + np.flatnonzero(near)):
                if found is not None and numbers[place] <= found:
                    break
                if self._regions[place].overlaps(region):
                    found = int(numbers[place])
                    break
        return found


def _check_overlap(footprint: Footprint, instruction: Elementwise) -> None:
    """Refuse a write that meets another tensor of the instruction other than element for element."""
    sources = [region for region in footprint.reads if region.name in ("a", "b")]
    dst, *results = footprint.writes
    pairs = [(dst, source) for source in sources]
    pairs += [(result, region) for result in results for region in (dst, *sources)]
    for written, other in pairs:
        same = written is dst and written.coincides(other)
        if not same and written.overlaps(other):
            raise ValueError(
                f"{instruction.opcode.name}: {written.name} must be apart from {other.name}, or for dst the same "
                f"element for element, not bytes {written.span} over {other.span}"
            )
