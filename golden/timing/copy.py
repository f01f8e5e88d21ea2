"""Groups of a DMA copy: bursts or on-chip accesses that are requested together."""

from collections import deque
from dataclasses import dataclass, field
from math import prod
from typing import cast

from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.walk import Walk, walk_of
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import DmaCopy, Record, Storage

__all__ = ["Copy", "plan_copy"]

GROUP = 32
"""Approximate beats of a group of several bursts."""

MOST = 64
"""A copy of at most this many bursts has one group per burst."""

TO_WRITER = 3
"""Cycles from the arrival of a beat until the writer accepts it, without a cast."""


@dataclass(slots=True)
class Copy:
    """A DMA copy and its progress. The copy moves in groups of beats.

    Arguments:
        casts: cycles that the cast unit needs for all elements; 0 without a cast.
        through: latency of the cast unit in cycles; 0 without a cast.
        rows: whether the copy is a gather or a scatter, which reads row numbers.
        requested, consumed: number of groups requested from the source, and accepted by the destination side.
        arrived: for each arrived group that is not yet accepted, its beats and its first and last cycle.
        accepts_from: cycle from which the destination side accepts groups; 0 while unknown.
        written: cycle of the last write to SBUF.
    """

    record: Record
    timed: Timed
    source: Walk
    target: Walk
    storages: tuple[Storage, Storage]
    groups: int
    casts: int
    through: int
    rows: bool
    requested: int = 0
    consumed: int = 0
    arrived: deque = field(default_factory=deque)
    accepts_from: int = 0
    written: int = 0

    @property
    def from_hbm(self) -> bool:
        """True if the source is in HBM."""
        return self.storages[0] == Storage.HBM

    @property
    def to_hbm(self) -> bool:
        """True if the destination is in HBM."""
        return self.storages[1] == Storage.HBM

    @property
    def latency(self) -> int:
        """Cycles from the arrival of a beat until the writer accepts it."""
        return TO_WRITER + self.through

    def start(self, number: int, whole: int) -> int:
        """Spread an amount `whole` evenly over all groups; return the sum for the groups before group `number`."""
        return whole * number // self.groups

    def part(self, number: int, whole: int) -> int:
        """Spread an amount `whole` evenly over all groups; return the share of group `number`."""
        return self.start(number + 1, whole) - self.start(number, whole)


def plan_copy(record: Record, timed: Timed, config: Config) -> Copy:
    """Return the copy of a record with no group requested or consumed yet."""
    copy = cast("DmaCopy", record.instruction)
    size = config.hbm_bytes
    rows = copy.gather is not None or copy.scatter is not None
    source, target = (walk_of(side, copy.shape, rows, config) for side in (copy.src, copy.dst))
    casts = through = 0
    if copy.src.format is not copy.dst.format:
        lanes = config.cast_lanes if copy.dst.format.bits < 32 else min(config.cast_lanes, size // 4)
        elements = prod(copy.shape) / source.beats
        casts = source.beats * max(1, round(-(-elements // lanes)))
        through = timing.cast_latency(config.cast_latency)
    if copy.src.storage == Storage.HBM:
        bursts = source.bursts
    else:
        bursts = target.bursts if copy.dst.storage == Storage.HBM else -(-source.beats // GROUP)
    wanted = min(bursts, max(MOST, -(-max(source.beats, target.beats) // GROUP)))
    # A group fits in half of the buffer, so that the next one can arrive meanwhile.
    groups = max(1, min(source.beats, max(wanted, -(-2 * source.beats // config.dma_beats))))
    return Copy(record, timed, source, target, (copy.src.storage, copy.dst.storage), groups, casts, through, rows)
