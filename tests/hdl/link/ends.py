"""Cycle-accurate model of a link end."""

from collections import deque
from dataclasses import dataclass, field

from neuroncore_rtl.hdl.link.end import LinkEnd, sequence_window
from neuroncore_rtl.hdl.link.flit import RETRY_BITS
from neuroncore_rtl.spec.link import SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["BAD", "EndModel", "Frame"]

BAD = "bad"
"""A received frame with a wrong CRC."""

NUMBERS = 1 << SEQUENCE_BITS


@dataclass(frozen=True)
class Frame:
    """A frame; `flit` is a flit and its virtual channel. Without a flit these fields of the frame contain `filler`."""

    flit: tuple[int, int] | None = None
    sequence: int = 0
    answer: int = 0
    expected: int = 0
    retry: int = 0
    credits: tuple[int, ...] = (0,) * VIRTUAL_CHANNELS
    filler: tuple[int, int] | None = (0, 0)


@dataclass
class EndModel:
    """Model of a link end; a reset keeps the replay memory `memory` and its read port's word `read`."""

    latency: int
    memory: dict = field(default_factory=dict)
    read: tuple[int, int] = (0, 0)
    flits: list = field(default_factory=list)  # all accepted flits, with their virtual channels
    known: int = 0  # number of flits that the other end has acknowledged
    sequence: int = 0
    answer: int = 0
    last: int = 0  # virtual channel of the last accepted flit
    expected: int = 0
    retry: int = 0
    buffers: list = field(default_factory=lambda: [deque() for _ in range(VIRTUAL_CHANNELS)])
    gone: list = field(default_factory=lambda: [0] * VIRTUAL_CHANNELS)
    heard: object = None
    quiet: int = 0
    tx: Frame = Frame()
    counters: dict = field(
        default_factory=lambda: dict.fromkeys(("flits", "replays", "crc_errors", "discarded", "idle", "stalled"), 0)
    )

    def __post_init__(self):
        self.window = sequence_window(self.latency)
        self.free = [self.window] * VIRTUAL_CHANNELS
        self.returned = [0] * VIRTUAL_CHANNELS  # last received credit counts

    @property
    def dead(self) -> bool:
        return self.quiet >= LinkEnd.DEAD_CYCLES

    def ready(self, valid) -> list[bool]:
        """Return which virtual channels accept a flit."""
        room = len(self.flits) - self.known < self.window
        may = [room and free > 0 for free in self.free]
        other = 1 - self.last
        chosen = other if valid[other] and may[other] else self.last
        return [may[vc] and vc == chosen for vc in range(VIRTUAL_CHANNELS)]

    def head(self, vc: int) -> int | None:
        return self.buffers[vc][0] if self.buffers[vc] else None

    def step(self, offered, taken, heard) -> None:
        """Advance by one cycle.

        `offered` is the flit that the router offers in each virtual channel, or None; `taken` says whether it accepts
        the flit on offer (`head`); `heard` is the received frame, `BAD`, or None.
        """
        counters, frame = self.counters, self.heard if isinstance(self.heard, Frame) else None
        saying = self.flits[self.sequence] if self.sequence < len(self.flits) else None
        following = Frame(
            saying, self.sequence % NUMBERS, self.answer, self.expected % NUMBERS, self.retry,
            tuple(gone % NUMBERS for gone in self.gone), None if saying else self.read,
        )  # fmt: skip
        counters["idle"] += saying is None
        counters["crc_errors"] += self.heard == BAD
        if not self.dead:
            owed = self.known < len(self.flits)
            self.quiet = 0 if frame and (frame.expected != self.known % NUMBERS or not owed) else self.quiet + 1

        ready = self.ready([flit is not None for flit in offered])
        accepted = [vc for vc, flit in enumerate(offered) if flit is not None and ready[vc]]
        counters["stalled"] += not accepted and any(flit is not None for flit in offered)
        for vc in range(VIRTUAL_CHANNELS):
            if taken[vc] and self.buffers[vc]:
                self.buffers[vc].popleft()
                self.gone[vc] += 1
        self.sequence += saying is not None
        for vc in accepted:
            self.memory[len(self.flits) % (self.window + 1)] = (offered[vc], vc)
            self.flits.append((offered[vc], vc))
            self.free[vc] -= 1
            self.last = vc
            counters["flits"] += 1
        if frame:
            self._hear(frame)
        self.read = self.memory.get(self.sequence % (self.window + 1), (0, 0))
        self.tx, self.heard = following, heard

    def _hear(self, frame: Frame) -> None:
        self.known += (frame.expected - self.known) % NUMBERS
        if frame.retry != self.answer:
            self.sequence, self.answer = self.known, frame.retry
            self.counters["replays"] += 1
        for vc, gone in enumerate(frame.credits):
            self.free[vc] += (gone - self.returned[vc]) % NUMBERS
            self.returned[vc] = gone
        counts = frame.answer == self.retry
        if counts and frame.sequence != self.expected % NUMBERS:
            self.retry = (self.retry + 1) % (1 << RETRY_BITS)
        elif counts and frame.flit:
            flit, vc = frame.flit
            self.buffers[vc].append(flit)
            self.expected += 1
            return
        self.counters["discarded"] += frame.flit is not None
