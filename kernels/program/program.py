"""A program of the whole core under construction: instructions in program order, and what each waits for.

Instructions are appended as if they ran one after the other. Each goes to the queue of its engine, and starts when what
it conflicts with has completed; everything else runs at the same time. The order is worked out from the bytes that
instructions touch (:mod:`kernels.program.order`) and held by semaphores:

* An instruction that another one waits for adds 1 to a semaphore of its lane when it completes; the other one waits for
  the count. The tensor queue has two lanes, as a LoadStationary may complete before the MultiplyMoving before it; every
  other queue is one lane. A semaphore that has counted to its maximum is followed by a fresh one.
* A record has room for two waits. What is left over goes to the record before it in its queue if that has room, else to
  a barrier: a copy of one word that takes up two waits and is waited for in their place.
* Within the vector and the scalar queue the engine keeps the order; reading what an earlier instruction still writes
  is kept from by not setting `overlap`.

A collective waits and is waited for like everything else that touches its core's HBM; its queue is one lane. What other
cores have to do before it is their programs' affair: all of a group must append it, and what comes before it in their
collective queues must not wait for one that comes after it here.

A program may have *sections*, which the control program starts one after the other, each once, when everything before
has retired. It may leave out any of them: no record waits for one of another section, or for a semaphore of one.
"""

from dataclasses import dataclass, field, replace
from itertools import cycle

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.entries import Entry, records_of
from neuroncore_rtl.kernels.program.footprint import check_apart
from neuroncore_rtl.kernels.program.order import Order
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import SBUF_BYTES, SEMAPHORES, Config
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa.engine import QUEUES

__all__ = ["HEADER_BYTES", "Program"]

HEADER_BYTES = 128
"""What an image's header takes up, so that everything behind it is aligned."""

MULTIPLIES, LOADS = 0, 1
"""Lanes of the tensor queue; that of queue q > 0 is q + 1."""

MOST_WAITS = 2


@dataclass
class Program:
    """A program under construction.

    Arguments:
        config: the machine's parameters.
        base: HBM address of its image, a multiple of 128; tensors follow behind the image's header.
        semaphores: those that it may use, all zero when it starts; others are left to the control program.
        core: the one of its instance that executes it.

    Attributes:
        space: where tensors of all storages get their places.
        entries: what was appended, and barriers, in program order.
    """

    config: Config
    base: int = 0
    semaphores: range = range(SEMAPHORES)
    core: int = 0
    space: Allocator = field(init=False)
    entries: list[Entry] = field(init=False, default_factory=list)

    def __post_init__(self):
        if not 0 <= self.core < self.config.cores:
            raise ValueError(f"core must be between 0 and {self.config.cores - 1}, not {self.core!r}")
        if self.base < 0 or self.base % isa.RECORD_BYTES:
            raise ValueError(f"base must be a multiple of {isa.RECORD_BYTES}, not {self.base!r}")
        queues = isa.queue_count(self.config)
        lanes = min(self.config.partitions, self.config.dma_engines)
        words = -(-self.config.dma_engines // lanes)
        end = SBUF_BYTES - 4 * words
        self.space = Allocator(self.config, hbm=self.base + HEADER_BYTES, sbuf_end=end)
        self._order = Order(lanes=queues + 1, queues=queues)
        self._last: list[Entry | None] = [None] * queues
        self._section = 0
        self._turns = cycle(self.dma_queues)
        self._context = isa.Context(self.config, core=self.core)
        # For barriers each DMA engine has a word of its own at the end of SBUF.
        self._words = Tensor(name="barriers", format=INT32, address=end, partitions=lanes, shape=(words,))
        self._positions: list[list[int]] = [[] for _ in range(queues + 1)]

    @property
    def dma_queues(self) -> range:
        """The queues of the DMA engines."""
        return isa.queues_of(isa.Engine.DMA, self.config)

    @property
    def load_queues(self) -> range:
        """The DMA queues by which kernels load: half of them, and at least one for each port to HBM."""
        return self.dma_queues[: max(self.config.hbm_ports, len(self.dma_queues) // 2)]

    @property
    def store_queues(self) -> range:
        """The DMA queues by which kernels store, so that no load is behind a store that waits: the others, if any."""
        return self.dma_queues[len(self.load_queues) :] or self.dma_queues

    def append(self, instruction: isa.Instruction, queue: int | None = None) -> Entry:
        """Append an instruction, whose own `overlap` does not matter; return its entry.

        Arguments:
            instruction: of any engine.
            queue: of a copy, the queue that it goes to; None: that of each DMA engine in turn.

        Raises:
            ValueError: if the instruction is not legal; if it writes what it also reads other than element for element;
                if the queue is not one of its engine.
        """
        instruction.check(self._context)
        check_apart(instruction)
        queue = self._queue(instruction, queue)
        self._context = instruction.after(self._context)
        lane = queue + 1 if queue else instruction.lane
        # The engine keeps the order of its own instructions; the two lanes of the tensor queue have no memory in common
        # that either writes.
        ordered = (MULTIPLIES, LOADS) if queue == 0 else (lane,)
        waits = self._fit(queue, self._order.conflicts(queue, instruction, ordered))
        if instruction.overlap is not None:
            # What it waits for elsewhere may itself have waited for what it reads.
            for other, count in waits.items():
                self._order.wait(queue, other, count)
            independent = not self._order.reads_unfinished(queue, lane, instruction)
            if not independent:
                self._order.settle(queue, lane)
            instruction = replace(instruction, overlap=independent)
        return self._add(instruction, queue, lane, waits)

    def start_section(self) -> None:
        """Start the next section with what is appended from now on."""
        self._section += 1
        self._order.finish()
        # Weights stay, but not if the section that loads them is left out.
        self._context = replace(self._context, loaded=None)

    def records(self) -> list[isa.Record]:
        """Return the record of every entry, in program order.

        Raises:
            ValueError: if there are too few semaphores.
        """
        return records_of(self.entries, self.semaphores)

    def _queue(self, instruction: isa.Instruction, queue: int | None) -> int:
        queues = isa.queues_of(instruction.engine, self.config)
        if queue is None:
            return next(self._turns) if len(queues) > 1 else queues[0]
        if queue not in queues:
            names = ", ".join(isa.queue_name(q, self.config) for q in queues)
            raise ValueError(f"queue must be that of {names}, not {queue!r}")
        return queue

    def _fit(self, queue: int, waits: dict[int, int]) -> dict[int, int]:
        """Make sure of what a queue's next instruction must wait for; return what it has to wait for itself."""
        before = self._last[queue]
        while len(waits) > MOST_WAITS and before is not None and len(before.waits) < MOST_WAITS:
            # No record may wait for one that comes after it in the program, or queues could wait for each other.
            early = [lane for lane, count in waits.items() if self._positions[lane][count - 1] < before.position]
            if not early:
                break
            self._wait(queue, before.waits, early[0], waits.pop(early[0]))
        while len(waits) > MOST_WAITS and queue == isa.collective_queue(self.config):
            waits = self._join(waits)
        while len(waits) > MOST_WAITS:
            barrier = self._barrier(queue, dict(list(waits.items())[:MOST_WAITS]))
            rest = dict(list(waits.items())[MOST_WAITS:])
            waits = rest if barrier.queue == queue else {**rest, barrier.lane: barrier.number + 1}
        return waits

    def _join(self, waits: dict[int, int]) -> dict[int, int]:
        """Return fewer waits for the same ones of a collective, all of DMA queues, by a barrier in one of these.

        It holds up what comes behind what is waited for, such as more stores. Elsewhere it could hold up loads.
        """
        home, *others = list(waits)[: MOST_WAITS + 1]
        barrier = self._barrier(home - 1, {lane: waits[lane] for lane in others})
        return {lane: count for lane, count in waits.items() if lane not in (home, *others)} | {
            barrier.lane: barrier.number + 1
        }

    def _barrier(self, queue: int, waits: dict[int, int]) -> Entry:
        """Append a record that waits for two others, to `queue` if that is a DMA engine's."""
        if queue not in self.dma_queues:
            queue = next(self._turns)
        place, lane = divmod(queue - len(QUEUES), self._words.partitions)
        word = self._words[lane : lane + 1, place]
        return self._add(dma_copy(word, word), queue, queue + 1, waits)

    def _add(self, instruction: isa.Instruction, queue: int, lane: int, waits: dict[int, int]) -> Entry:
        needed: list[tuple[int, int]] = []
        for other, count in waits.items():
            self._wait(queue, needed, other, count)
        # A MultiplyMoving uses the weights of the last LoadStationary, so that one and those before it are done.
        implied = (LOADS,) if lane == MULTIPLIES else ()
        number = self._order.add(queue, lane, instruction, implied)
        entry = Entry(
            position=len(self.entries),
            section=self._section,
            queue=queue,
            lane=lane,
            number=number,
            instruction=instruction,
            waits=needed,
        )
        self.entries.append(entry)
        self._last[queue] = entry
        self._positions[lane].append(entry.position)
        return entry

    def _wait(self, queue: int, waits: list[tuple[int, int]], lane: int, count: int) -> None:
        waits.append((lane, count))
        self._order.wait(queue, lane, count)
