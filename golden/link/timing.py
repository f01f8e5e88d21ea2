"""Duration of a ring collective, computed step by step instead of cycle by cycle.

In a step every rank sends one segment to the next rank, at most one beat per cycle. A round is the steps that finish
one segment of every rank. A segment that a rank forwards cannot begin before its first beat has arrived from the
previous rank, nor end before its last beat has arrived. So the times of a step follow from the times of the previous
step. A long collective is extrapolated from a few rounds.

Three things delay a beat: latencies (`Parameters`); beats of other ranks and of the other channel, which share a link
evenly; and, if the receiver is distant, the wait for its credits.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.golden.link.route import Hop, route
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import (
    CHUNK_GRANULES,
    GRANULE,
    Collective,
    CollectiveKind,
    CollectiveType,
    Group,
    best_chunk,
    element_bytes,
)
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["CALIBRATED", "LinkCase", "Parameters", "calibrate", "cycles_of", "timing_errors"]

_K = CollectiveKind

CALIBRATED = ("turn", "operation", "start")
"""Parameters that `calibrate` can determine from measurements with several ranks, lengths and chunks."""

ROUNDS = 32
"""Full rounds that are computed; each later round lasts the average of the second half of these rounds."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Latencies in cycles that the timing model of collectives cannot derive from the configuration.

    `router` and `link` are latencies of the hardware; the others were fitted to all-reduces on the RTL (`make bench
    PART=link`) with an HBM latency of 64 cycles.

    Arguments:
        router: latency of a router in cycles.
        link: latency of the logic at both ends of a link, in cycles, without that of the wire.
        turn: cycles from a beat's arrival at a channel until the channel's result is at the router.
        operation: cycles that a segment occupies a channel in addition to its beats.
        start: cycles from the issue of an instruction until the message that announces the instruction to the
            neighbours is at the router; also those from the arrival of a neighbour's message to the first beat.
        memory: cycles from the start until the first beat is loaded from memory.
        finish: cycles from the arrival of the last beat until the memory acknowledges the store of that beat.
    """

    router: float = 2
    link: float = 4
    turn: float = 10
    operation: float = 1
    start: float = 24
    memory: float = 75
    finish: float = 44


@dataclass(frozen=True, kw_only=True)
class LinkCase:
    """A collective to be timed, on otherwise idle cores.

    `ranks`, `stride` and `base` are number of ranks, distance between ranks and first core of the group. `count` is the
    number of elements of a block, `chunk` the granules of a segment, by default `spec.isa.collective.best_chunk`. For
    `dtype` and `narrow` see `spec.isa.collective.Collective`. `kind` is ALL_REDUCE, REDUCE_SCATTER or ALL_GATHER. If
    `in_place`, the src of an ALL_GATHER is its own block of dst; otherwise every rank also copies its block.
    """

    instance: Instance
    ranks: int
    count: int
    stride: int = 1
    base: int = 0
    dtype: CollectiveType = CollectiveType.FP32
    chunk: int | None = None
    narrow: bool = False
    kind: CollectiveKind = CollectiveKind.ALL_REDUCE
    in_place: bool = False

    @classmethod
    def of(cls, instance: Instance, one: Collective) -> "LinkCase":
        """Return the case of an instruction."""
        group = one.group
        return cls(
            instance=instance,
            ranks=group.ranks,
            count=one.count,
            stride=group.stride,
            base=group.base,
            dtype=one.dtype,
            chunk=one.chunk,
            narrow=one.narrow,
            kind=one.kind,
            in_place=one.kind == _K.ALL_GATHER and one.src == one.dst + one.rank * one.pitch,
        )

    def __post_init__(self):
        if self.kind not in (_K.ALL_REDUCE, _K.REDUCE_SCATTER, _K.ALL_GATHER):
            raise ValueError(f"kind must be ALL_REDUCE, REDUCE_SCATTER or ALL_GATHER, not {self.kind!r}")
        if self.in_place and self.kind != _K.ALL_GATHER:
            raise ValueError(f"in_place must be False for {self.kind.name}, not True")
        cores = self.group.cores
        if self.ranks < 2 or self.stride == 0 or min(cores) < 0 or max(cores) >= self.instance.cores:
            raise ValueError(f"group must be cores from 0 to {self.instance.cores - 1}, not {self.group!r}")

    @property
    def group(self) -> Group:
        """Group of cores that execute the collective."""
        return Group(self.base, self.stride, self.ranks)

    @property
    def granules(self) -> int:
        """Number of granules in a segment."""
        return self.chunk or best_chunk(self.count, self.ranks, self.kind)

    def part(self, channel: int) -> tuple[int, int]:
        """Return the first element of a block that a channel carries, and the element after the last one."""
        half = min(((-(-self.count // GRANULE) + 1) // 2) * GRANULE, self.count)
        return (0, half) if channel == 0 else (half, self.count)


def cycles_of(case: LinkCase, parameters: Parameters | None = None, rounds: int = ROUNDS) -> int:
    """Return the cycles from the simultaneous issue on all ranks until the last one retires.

    The model computes at most `rounds` full rounds, at least 2, and extrapolates the others.
    """
    parameters = parameters or Parameters()
    return round(max(_Ring(case, channel, parameters).finish(rounds) for channel in range(CHANNELS)))


def ideal_cycles(case: LinkCase) -> float:
    """Return the beats of the channel with more elements: the cycles without latencies and shared links."""
    first, end = case.part(0)
    step = (end - first) / (case.ranks if case.kind == _K.ALL_REDUCE else 1)
    wide, raw = (step * size / case.instance.link_bytes for size in _wire_bytes(case))
    phases = {_K.ALL_REDUCE: wide + raw, _K.REDUCE_SCATTER: wide, _K.ALL_GATHER: raw}
    return (case.ranks - 1) * phases[case.kind]


def timing_errors(measurements: list[tuple[LinkCase, int]], parameters: Parameters) -> np.ndarray:
    """Return the relative error of the model for each measurement, positive if the model is slower."""
    return np.array([cycles_of(case, parameters) / cycles - 1 for case, cycles in measurements])


def calibrate(
    measurements: list[tuple[LinkCase, int]], parameters: Parameters | None = None, names: tuple[str, ...] = CALIBRATED
) -> Parameters:
    """Fit the parameters `names`, none negative, to measured cycles, by least squares of the relative errors.

    `parameters` gives the initial values; parameters that are not in `names` keep them.
    """
    best = parameters or Parameters()
    cost = np.sum(timing_errors(measurements, best) ** 2)
    for _ in range(30):
        now = timing_errors(measurements, best)
        slopes = [timing_errors(measurements, replace(best, **{name: getattr(best, name) + 4})) - now for name in names]
        step = np.linalg.lstsq(np.stack(slopes, axis=1) / 4, -now, rcond=1e-6)[0]
        for scale in (1, 0.5, 0.25, 0.1):
            values = {n: max(0.0, getattr(best, n) + scale * float(s)) for n, s in zip(names, step, strict=True)}
            found = replace(best, **values)
            lower = np.sum(timing_errors(measurements, found) ** 2)
            if lower < cost:
                break
        else:
            return best
        settled = cost - lower < 1e-9
        best, cost = found, lower
        if settled:
            return best
    return best


def _wire_bytes(case: LinkCase) -> tuple[int, int]:
    """Return the bytes that an element occupies on a link as a partial result, and those as a final result."""
    raw = element_bytes(case.dtype)
    return (raw if case.narrow else 4), raw


class _Ring:
    def __init__(self, case: LinkCase, channel: int, parameters: Parameters):
        self.case, self.parameters = case, parameters
        begin, end = case.part(channel)
        self.elements = end - begin
        self.direction = d = 1 - 2 * channel
        ranks, cores = np.arange(case.ranks), case.group.cores
        self.ranks, self.before = ranks, (ranks - d) % case.ranks
        own, other = (self._ways(c) for c in (channel, 1 - channel))
        busy = own + other * (case.part(1 - channel)[0] < case.part(1 - channel)[1])
        flows = Counter((hop.chip, hop.direction) for way in busy for hop in way)
        sharing = np.array([max((flows[hop.chip, hop.direction] for hop in way), default=1) for way in own])
        back = [route(case.instance, cores[(r + d) % case.ranks], cores[r], channel) for r in ranks]
        out, back = (np.array([self._latency(len(way)) for way in some]) for some in (own, back))
        window = 2 * CHUNK_GRANULES * GRANULE * 4 // case.instance.link_bytes
        # The receiver grants credits once per half of the window. A grant is a beat in the opposite direction, on a
        # link that the other channel uses.
        self.beat = np.maximum(sharing * (1 + 2 / window), (window / 2 + out + back + parameters.turn) / window)
        rate = case.instance.core.ring_rate
        self.pace = case.instance.link_bytes / rate if rate else 0  # minimum cycles of a sent beat
        self.arrival = (out + parameters.turn)[self.before]
        begin = parameters.start + np.maximum(parameters.memory, back + parameters.start)
        self.first = self.last = begin.astype(float)
        # Cycle in which a channel has processed all received beats; None before the first round.
        self.free: np.ndarray | None = None

    def _ways(self, channel: int) -> list[list[Hop]]:
        cores, n = self.case.group.cores, self.case.ranks
        return [route(self.case.instance, cores[r], cores[(r + 1 - 2 * channel) % n], channel) for r in range(n)]

    def _latency(self, hops: int) -> float:
        p = self.parameters
        return (hops + 1) * p.router + hops * (p.link + self.case.instance.link_latency)

    def finish(self, rounds: int) -> float:
        case, p = self.case, self.parameters
        if not self.elements:
            return 0
        segment = case.granules * GRANULE
        whole = segment * (case.ranks if case.kind == _K.ALL_REDUCE else 1)
        full, rest = divmod(self.elements, whole)
        ends = [self.last.max()]
        for _ in range(min(full, rounds)):
            self._round(np.full(case.ranks, segment))
            ends.append(self.last.max())
        if full > rounds:
            late = (ends[-1] - ends[-1 - rounds // 2]) / (rounds // 2) * (full - rounds)
            self.first, self.last, self.free = self.first + late, self.last + late, self.free + late
        if rest:
            each = case.kind != _K.ALL_REDUCE
            self._round(np.full(case.ranks, rest) if each else np.clip(rest - segment * self.ranks, 0, segment))
        blocks = 1 if case.kind == _K.ALL_REDUCE else case.ranks - case.in_place
        moved = self.elements * element_bytes(case.dtype) * blocks
        memory = p.start + p.memory + moved / case.instance.core.hbm_bytes
        assert self.free is not None
        return max(self.free.max(), memory + p.turn) + p.finish

    def _round(self, elements: np.ndarray) -> None:
        case, ranks = self.case, self.case.ranks
        wide, raw = _wire_bytes(case)
        lanes = case.instance.link_bytes / 4
        reducing = 0 if case.kind == _K.ALL_GATHER else ranks - 1
        steps = 2 * (ranks - 1) if case.kind == _K.ALL_REDUCE else ranks - 1
        for step in range(steps):
            sent = elements[(self.ranks - self.direction * (step + 1)) % ranks]
            beats = np.ceil(sent * (wide if step < reducing else raw) / case.instance.link_bytes)
            time = beats * self.beat
            if 0 < step <= reducing:
                time = np.maximum(time, np.ceil(sent / lanes))
            time = np.where(sent > 0, time + self.parameters.operation, 0)
            sending = np.maximum(time, beats * self.pace)
            first, last = self.last, self.last + sending
            if self.free is None:
                # One port of the memory loads what a rank sends first, and its own addends.
                late = max(0.0, 2 * case.instance.link_bytes / case.instance.core.hbm_bytes - 1)
                self.free = first + self.parameters.turn + late * sending
            if step == 0 and case.kind == _K.ALL_GATHER and not case.in_place:
                self.free = self.free + time  # copies its own segment before it receives others
            if step:
                first = np.maximum(np.maximum(first, self.free), self.first[self.before] + self.arrival)
                last = np.maximum(first + sending, self.last[self.before] + self.arrival)
            self.first = np.where(sent > 0, first, self.first)
            self.last = np.where(sent > 0, last, self.last)
        assert self.free is not None
        # The last segment is not forwarded but occupies the channel too, while the first segment of the next round is
        # sent.
        begun = np.maximum(np.maximum(self.free, self.last), self.first[self.before] + self.arrival)
        ended = np.maximum(begun + time[self.before], self.last[self.before] + self.arrival)
        self.free = np.where(sent[self.before] > 0, ended, self.free)
