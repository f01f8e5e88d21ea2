"""A program of the whole core under construction: instructions in program order, and where their tensors are.

Instructions are appended as if they ran one after the other; so kernels read like the algorithm. When the program is
whole, they are put in an order that keeps engines busy (:mod:`kernels.program.list_scheduling`), if that is wanted; its
temporaries get their places (:mod:`kernels.program.allocation`), and each instruction goes to the queue of its engine
with what it must wait for (:mod:`kernels.program.synchronisation`); everything else runs at the same time.

A collective waits and is waited for like everything else that touches its core's HBM; its queue is one lane. What other
cores have to do before it is their programs' affair: all of a group must append it, and what comes before it in their
collective queues must not wait for one that comes after it here.

A program may have *sections*, which the control program starts one after the other, when everything before has retired.
It may leave out any of them, or run one again: no record waits for one of another section, each counts on the same
semaphores anew, and what several of them touch has its place all the time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle

from neuroncore_rtl.kernels.program.allocation import OutOfMemory, addresses, peak
from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.collector import collector_paused
from neuroncore_rtl.kernels.program.entries import Entry, ProgramStep, records_of
from neuroncore_rtl.kernels.program.flow import Flow
from neuroncore_rtl.kernels.program.footprint import check_apart
from neuroncore_rtl.kernels.program.list_scheduling import scheduled
from neuroncore_rtl.kernels.program.source import caller, located
from neuroncore_rtl.kernels.program.synchronisation import Synchronisation
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Storage

__all__ = ["HEADER_BYTES", "ORDERS", "Program"]

HEADER_BYTES = 128
"""What an image's header takes up, so that everything behind it is aligned."""

ORDERS = ("program", "scheduled")
"""How the instructions of a queue follow each other."""

SHARES = (0.9, 0.6, 0.3)
"""Of each memory, what steps before their turn may fill: less, if pieces of what is left are too small."""


@dataclass
class Program:
    """A program under construction.

    Arguments:
        config: the machine's parameters.
        base: HBM address of its image, a multiple of 128; tensors follow behind the image's header.
        semaphores: those that a section may use, all zero when it starts, others are left to the control program;
            None: all.
        core: the one of its instance that executes it.
        order: "program": every queue starts its instructions as they were appended; "scheduled": in an order that
            keeps engines busy. Both leave the same in every memory. What does not fit in memory when it is scheduled
            keeps the order in which it was appended.
        tile: rows and columns of the array that kernels of the library use; None: all. Sums along K are rounded where
            they leave the array, so with the same tile they leave the same bits on every machine that has as many.

    Attributes:
        space: where tensors of all storages are named.
        flow: registers, and loops whose rounds only the run knows (:mod:`kernels.program.flow`).
        loads, stores: queues of the next copies to and from the chip, `load_queues` and `store_queues` in turn.
    """

    config: Config
    base: int = 0
    semaphores: range = None  # pyright: ignore[reportAssignmentType] (all, see __post_init__)
    core: int = 0
    order: str = "program"
    tile: int | None = None
    space: Allocator = field(init=False)
    flow: Flow = field(init=False)
    loads: Iterator[int] = field(init=False)
    stores: Iterator[int] = field(init=False)

    def __post_init__(self):
        if self.semaphores is None:
            self.semaphores = range(self.config.semaphores)
        if not 0 <= self.core < self.config.cores:
            raise ValueError(f"core must be between 0 and {self.config.cores - 1}, not {self.core!r}")
        if self.base < 0 or self.base % isa.RECORD_BYTES:
            raise ValueError(f"base must be a multiple of {isa.RECORD_BYTES}, not {self.base!r}")
        if self.order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}, not {self.order!r}")
        most = min(self.config.rows, self.config.columns)
        if self.tile is not None and not 1 <= self.tile <= most:
            raise ValueError(f"tile must be from 1 to the {most} rows and columns of the array, not {self.tile!r}")
        self.space = Allocator(self.config, hbm=self.base + HEADER_BYTES)
        self.loads, self.stores = cycle(self.load_queues), cycle(self.store_queues)
        self._steps: list[ProgramStep] = []
        self._engines: set[isa.Engine] = set()  # that have instructions in the section
        self._section = 0
        self._in_order = False
        self._context = isa.Context(self.config, core=self.core)
        self._laid_out: tuple[tuple, dict[int, int], list[Entry]] = (), {}, []
        self.flow = Flow(self)

    @property
    def rows(self) -> int:
        """Rows of the array that kernels use: those along which it adds up."""
        return self.tile or self.config.rows

    @property
    def columns(self) -> int:
        """Columns of the array that kernels use."""
        return self.tile or self.config.columns

    @property
    def lanes(self) -> int:
        """The most rows of a tile that is an operand of the array, or a result of it, whichever is needed."""
        return min(self.rows, self.columns)

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

    @located
    def append(self, instruction: isa.Instruction, queue: int | None = None) -> None:
        """Append an instruction, whose own `overlap` does not matter.

        Arguments:
            instruction: of any engine; NOPs come by themselves.
            queue: of a copy, the queue that it goes to; None: that of each DMA engine in turn.

        Raises:
            ValueError: if the instruction is not legal, or a NOP; if a tensor is another program's; if it goes on with
                the sums of one that is not in its section; if it writes what it also reads other than element
                for element; if the queue is not one of its engine. The message ends with the kernel's line.
        """
        if not isinstance(instruction, isa.Instruction) or instruction.lane is None:
            raise ValueError(f"instruction must be of an engine, not {getattr(instruction, 'name', instruction)}")
        # A place may be anywhere, so its start is as good as any.
        instruction.moved(_in_buffer).check(self._context)
        buffers = buffers_of((*instruction.writes, *instruction.reads))
        if not self.space.buffers.keys() >= {*buffers} - {0}:
            raise ValueError(f"{instruction.name}: tensors must be of this program, but one is another one's temporary")
        check_apart(instruction)
        if instruction.continues and instruction.engine not in self._engines:
            rule = "what goes on from the instruction before must have one before it in its section"
            raise ValueError(f"{instruction.name}: {rule}")
        self._engines.add(instruction.engine)
        if queue is not None and queue not in (queues := isa.queues_of(instruction.engine, self.config)):
            names = ", ".join(isa.queue_name(q, self.config) for q in queues)
            raise ValueError(f"queue must be that of {names}, not {queue!r}")
        self._context = instruction.after(self._context)
        self._steps.append(ProgramStep(instruction, self._section, queue, caller(), buffers, self._in_order))

    def insert(self, number: int, instruction: isa.Instruction) -> None:
        """Insert an instruction before the step of a number, in its section and with its line, that needs nothing of
        what its engine did before, and leaves nothing there.

        Raises:
            ValueError: if it is not legal.
        """
        instruction.moved(_in_buffer).check(isa.Context(self.config, core=self.core))
        buffers = buffers_of((*instruction.writes, *instruction.reads))
        step = self._steps[number]
        self._steps.insert(number, step._replace(instruction=instruction, queue=None, buffers=buffers))

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Let every queue start what is appended within in the order in which it is appended, and copies without a
        queue when they are ready: for a kernel that has chosen the order itself, and is faster by it. What is appended
        before or behind may still come between."""
        before, self._in_order = self._in_order, True
        try:
            yield
        finally:
            self._in_order = before

    def start_section(self) -> None:
        """Start the next section with what is appended from now on."""
        if self._steps and self._steps[-1].section == self._section:
            self.flow.ran(self._section)
        self._section += 1
        # Weights stay, but not if the section that loads them is left out.
        self._context = replace(self._context, loaded=None)
        self._engines.clear()

    @property
    def steps(self) -> list[ProgramStep]:
        """What was appended, in that order; not to be changed."""
        return self._steps

    @property
    def entries(self) -> list[Entry]:
        """What was appended, and NOPs, in the order in which they were laid out.

        Raises:
            ValueError: as :func:`kernels.program.allocation.addresses`.
        """
        return self._lay_out()[1]

    def records(self) -> list[isa.Record]:
        """Return the record of every entry, in their order.

        Raises:
            ValueError: if there are too few semaphores; as `entries`.
        """
        return records_of(self.entries, self.semaphores)

    def end(self, storage: Storage) -> int:
        """Return where the last byte ends that tensors have of a storage, on chip of a partition."""
        if storage == Storage.HBM:
            return self.space.used(storage)
        return peak(self._lay_out()[0], self.space, storage)

    @collector_paused()
    def _lay_out(self) -> tuple[dict[int, int], list[Entry]]:
        """Return the address of every buffer, and the entries."""
        known, places, entries = self._laid_out
        # What is kept takes room from the temporaries.
        wanted = len(self._steps), self.space.used(Storage.SBUF), self.space.used(Storage.PSUM), self.order
        if known != wanted:
            places, entries = self._scheduled() or self._placed(self._steps)
            self._laid_out = wanted, places, entries
        return places, entries

    def _scheduled(self) -> tuple[dict[int, int], list[Entry]] | None:
        """Return the same in an order that keeps engines busy; None if that is not wanted, or does not fit."""
        for share in SHARES if self.order == "scheduled" else ():
            try:
                return self._placed(scheduled(self._steps, self.space, share))
            except OutOfMemory:
                continue
        return None

    def _placed(self, steps: list[ProgramStep]) -> tuple[dict[int, int], list[Entry]]:
        """Return the same of steps in their order."""
        places = addresses(steps, self.space)
        sequence = Synchronisation(self.config)

        def place(storage: Storage, address: int) -> int:
            buffer = buffer_of(address)
            return places[buffer] + offset_of(address) if buffer else address

        for step in steps:
            sequence.append(step._replace(instruction=step.instruction.moved(place)))
        return places, sequence.entries


def _in_buffer(storage: Storage, address: int) -> int:
    """Return an address within its buffer."""
    return offset_of(address)
