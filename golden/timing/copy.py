"""A copy as a DMA engine moves it: in groups, of as many bursts or accesses on chip as are asked for together."""

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
"""Beats of a group, more or less, where a burst is not one, or there are too many of them."""

MOST = 64
"""Bursts that are a group each."""

TO_WRITER = 3
"""Cycles from a beat that has come to the writer's taking it, without a cast."""


@dataclass(slots=True)
class Copy:
    """A copy and how far it is.

    Arguments:
        record, timed: its record, and that in time.
        source, target: the walks over its tensors.
        storages: of source and target.
        groups: how many.
        casts: cycles of its casts, 0 if there are none. through: from an element to its cast, likewise.
        rows: whether it goes by row numbers.
        asked, taken: groups of the source that are asked for, that the destination's side has taken.
        arrived: of groups that were not taken, beats, and cycles of the first and the last one.
        begun: the cycle from which on the destination's side takes them; 0: not known yet.
        written: the cycle in which the last one was written to SBUF.
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
    asked: int = 0
    taken: int = 0
    arrived: deque = field(default_factory=deque)
    begun: int = 0
    written: int = 0

    @property
    def from_hbm(self) -> bool:
        """Whether the source is there."""
        return self.storages[0] == Storage.HBM

    @property
    def to_hbm(self) -> bool:
        """Whether the destination is there."""
        return self.storages[1] == Storage.HBM

    @property
    def late(self) -> int:
        """The cycles from a beat that has come to the writer's taking it."""
        return TO_WRITER + self.through

    def start(self, number: int, whole: int) -> int:
        """Return how many of `whole` belong to the groups before one."""
        return whole * number // self.groups

    def part(self, number: int, whole: int) -> int:
        """Return how many of `whole` belong to a group."""
        return self.start(number + 1, whole) - self.start(number, whole)


def plan_copy(record: Record, timed: Timed, config: Config) -> Copy:
    """Return the copy of a record before it begins."""
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
    # A group has room in half of the buffer, so that the next one comes meanwhile.
    groups = max(1, min(source.beats, max(wanted, -(-2 * source.beats // config.dma_beats))))
    return Copy(record, timed, source, target, (copy.src.storage, copy.dst.storage), groups, casts, through, rows)
