"""Program of a core under construction: tensors, and instructions in program order.

Kernels append instructions as if they ran one after the other. The complete program is lowered in five steps:

1. An engine is selected for what two engines can execute (`kernels.program.engine_selection`).
2. Tensors larger than their memory are divided; if the program still does not fit, its order changes, and tiles are
   spilled (`kernels.program.fitting`).
3. If requested, repeated instructions are removed (`kernels.program.repeats`), loads of short rows are merged
   (`kernels.program.loads`), and the list scheduler reorders the instructions (`kernels.program.list_scheduling`).
4. Temporaries are allocated (`kernels.program.allocation`).
5. Each instruction is put into the queue of its engine, with the waits that its dependences require
   (`kernels.program.synchronisation`).

A collective depends on the regions that it touches in the HBM of its core, like any other instruction. Collectives
complete in the order of their queue. The programs of all cores of its group must append it. To exclude deadlocks: in
the other programs of its group, no instruction before it in the collective queue may wait, directly or indirectly, for
an instruction that this program has after it.

A program may have *sections*. The control program starts a section when all earlier ones have retired, and may skip or
repeat sections. Therefore no record waits for one of another section, each section reuses the same semaphores, and a
tensor that several sections touch is live during the whole program.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle

from neuroncore_rtl.kernels.collector import collector_paused
from neuroncore_rtl.kernels.program.allocation import ON_CHIP, OutOfMemory, addresses, peak
from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.engine_selection import engines_selected
from neuroncore_rtl.kernels.program.entries import Entry, ProgramStep, records_of
from neuroncore_rtl.kernels.program.fitting import fitted, in_pieces
from neuroncore_rtl.kernels.program.flow import Flow
from neuroncore_rtl.kernels.program.footprint import check_apart
from neuroncore_rtl.kernels.program.list_scheduling import schedule
from neuroncore_rtl.kernels.program.loads import merged_loads
from neuroncore_rtl.kernels.program.repeats import KEPT, without_repeats
from neuroncore_rtl.kernels.program.spilling import Spill
from neuroncore_rtl.kernels.program.synchronisation import Synchronisation
from neuroncore_rtl.kernels.source import caller, located
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Storage

__all__ = ["HEADER_BYTES", "ORDERS", "Program"]

HEADER_BYTES = 128
"""Bytes of an image's header, padded so that the tensors after it are aligned."""

ORDERS = ("program", "scheduled")
"""Orders of the instructions of a queue."""

SHARES = (0.9, 0.6, 0.3)
"""Fractions of a memory that the scheduler may fill, tried in turn until all buffers fit despite fragmentation."""


@dataclass
class Program:
    """Program to which kernels append instructions.

    Arguments:
        config: parameters of the machine.
        base: HBM address of the program's image, a multiple of 128; tensors follow the image's header.
        semaphores: semaphores of each section, zero when it starts; by default all, else the control program may use
            the others.
        core: index of the core in its instance.
        order: "program" for program order in each queue; "scheduled" to keep engines busy, with the same results, if
            the program then fits in memory.
        tile: rows and columns of the array that library kernels use; None for all. Sums along K are rounded per tile,
            so a program with the same tile gives the same bits on every array that is large enough.
        stochastic: whether the vector and the scalar engine round all narrow floats stochastically, and differently in
            each round of a loop; a copy by DMA rounds to nearest. `Image.seeded` writes the seed.
    """

    config: Config
    base: int = 0
    semaphores: range = None  # pyright: ignore[reportAssignmentType] (all, see __post_init__)
    core: int = 0
    order: str = "program"
    tile: int | None = None
    stochastic: bool = False
    space: Allocator = field(init=False)
    flow: Flow = field(init=False)
    loads: Iterator[int] = field(init=False)
    stores: Iterator[int] = field(init=False)

    def __post_init__(self):
        if not isinstance(self.config, Config):
            raise TypeError(f"the machine must be a Config, such as PRESETS['small'], not {self.config!r}")
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
            raise ValueError(f"tile must be between 1 and the {most} rows and columns of the array, not {self.tile!r}")
        self.space = Allocator(self.config, hbm=self.base + HEADER_BYTES)
        self.loads, self.stores = cycle(self.load_queues), cycle(self.store_queues)
        self._steps: list[ProgramStep] = []
        self._engines: set[isa.Engine] = set()  # with instructions in the section
        self._section = 0
        self._in_order = False
        self._context = isa.Context(self.config, core=self.core)
        self._spills: list[Spill] = []
        self._laid_out: tuple[tuple, dict[int, int], list[Entry]] = (), {}, []
        self.flow = Flow(self)

    @property
    def rows(self) -> int:
        """Number of array rows that kernels use; the array sums over rows."""
        return self.tile or self.config.rows

    @property
    def columns(self) -> int:
        """Number of array columns that kernels use."""
        return self.tile or self.config.columns

    @property
    def lanes(self) -> int:
        """Maximum rows of a tile that is both operand and result of the array: min(`self.rows`, `self.columns`)."""
        return min(self.rows, self.columns)

    @property
    def dma_queues(self) -> range:
        """Queues of the DMA engines."""
        return isa.queues_of(isa.Engine.DMA, self.config)

    @property
    def load_queues(self) -> range:
        """DMA queues for loads: half of them, and at least one per port to HBM."""
        return self.dma_queues[: max(self.config.hbm_ports, len(self.dma_queues) // 2)]

    @property
    def store_queues(self) -> range:
        """DMA queues for stores; other queues than for loads if possible, so that no load is behind a stalled store."""
        return self.dma_queues[len(self.load_queues) :] or self.dma_queues

    @located
    def append(
        self, instruction: isa.Instruction, queue: int | None = None, *, other: isa.Instruction | None = None
    ) -> None:
        """Append an instruction; its `overlap` is ignored.

        `queue` is the queue of a copy; None rotates among the DMA engines. `other` is an instruction of the scalar
        engine with the same result as this one of the vector engine: the program selects one. Raises ValueError if the
        instruction is illegal or a NOP, uses a tensor of another program, continues sums that its section has not
        started, overwrites a source other than element for element, or the queue is not of its engine.
        """
        if not isinstance(instruction, isa.Instruction) or instruction.lane is None:
            raise ValueError(f"instruction must be of an engine, not {getattr(instruction, 'name', instruction)}")
        if self.stochastic:
            instruction = instruction.drawn(len(self._steps))
            other = other and other.drawn(len(self._steps))
        for one in (instruction, other) if other else (instruction,):
            one.moved(self._stand_in).check(self._context)
        buffers = buffers_of((*instruction.writes, *instruction.reads))
        if not self.space.buffers.keys() >= {*buffers} - {0}:
            raise ValueError(f"{instruction.name}: a tensor is a temporary of another program")
        check_apart(instruction)
        if instruction.continues and instruction.engine not in self._engines:
            rule = "there must be an earlier instruction in the section to continue from"
            raise ValueError(f"{instruction.name}: {rule}")
        self._engines.add(instruction.engine)
        if queue is not None and queue not in (queues := isa.queues_of(instruction.engine, self.config)):
            names = ", ".join(isa.queue_name(q, self.config) for q in queues)
            raise ValueError(f"queue must be one of {names}, not {queue!r}")
        self._context = instruction.after(self._context)
        self._steps.append(ProgramStep(instruction, self._section, queue, caller(), buffers, self._in_order, other))

    @located
    def insert(self, number: int, instruction: isa.Instruction) -> None:
        """Insert an instruction before step `number`, in the section and with the source line of that step.

        It must be legal, and not depend on the state of its engine, nor change it.
        """
        instruction.moved(self._stand_in).check(isa.Context(self.config, core=self.core))
        buffers = buffers_of((*instruction.writes, *instruction.reads))
        step = self._steps[number]
        self._steps.insert(number, step._replace(instruction=instruction, queue=None, buffers=buffers, other=None))

    @located
    def move_last(self, count: int, to: int) -> None:
        """Move the last `count` steps before step `to`, into its section; for the instructions as for `insert`."""
        moved = self._steps[len(self._steps) - count :]
        self._steps[len(self._steps) - count :] = []
        self._steps[to:to] = [step._replace(section=self._steps[to].section) for step in moved]

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """In each queue, start the instructions that are appended in the context in program order.

        For kernels that choose a faster order than the scheduler. Copies without a given queue may still start in
        another order, and other instructions may be scheduled in between.
        """
        before, self._in_order = self._in_order, True
        try:
            yield
        finally:
            self._in_order = before

    def start_section(self) -> None:
        """Start the next section."""
        if self._steps and self._steps[-1].section == self._section:
            self.flow.add_section(self._section)
        self._section += 1
        # The section that loaded the stationary operand may be skipped.
        self._context = replace(self._context, loaded=None)
        self._engines.clear()

    @property
    def steps(self) -> list[ProgramStep]:
        """Appended instructions in program order; do not modify."""
        return self._steps

    @property
    def entries(self) -> list[Entry]:
        """Instructions and NOPs in final order; raises ValueError as `kernels.program.allocation.addresses`."""
        return self._lay_out()[1]

    def records(self) -> list[isa.Record]:
        """Return the record of every entry; ValueError if there are too few semaphores, or as `entries`."""
        return records_of(self.entries, self.semaphores)

    @property
    def spills(self) -> list[Spill]:
        """Tiles that leave SBUF or PSUM for lack of room, in order."""
        self._lay_out()
        return self._spills

    @located
    def end(self, storage: Storage) -> int:
        """Return the first byte address above all tensors in a memory; in SBUF or PSUM, an address in a partition."""
        places, _ = self._lay_out()
        if storage == Storage.HBM:
            return self.space.fixed_end(storage)
        return peak(places, self.space, storage)

    def _stand_in(self, storage: Storage, address: int) -> int:
        """Return an address in memory for one in a temporary: its offset, or that in the bank of a divided tensor."""
        number, offset = buffer_of(address), offset_of(address)
        divided = number in self.space.buffers and self.space.buffers[number].size > len(self.space.room(storage))
        return offset % self.config.psum_bank if divided else offset

    @collector_paused()
    def _lay_out(self) -> tuple[dict[int, int], list[Entry]]:
        known, places, entries = self._laid_out
        # Kept tensors reduce the room for temporaries.
        wanted = len(self._steps), self.space.fixed_end(Storage.SBUF), self.space.fixed_end(Storage.PSUM), self.order
        if known != wanted:
            self._spills, steps = [], self._steps
            if any(step.other for step in steps):
                repeats = without_repeats(steps, self.space)[1] if self.order == "scheduled" else {}
                steps = engines_selected(steps, self.config, repeats)
            steps = in_pieces(steps, self.space)
            try:
                places, entries = self._schedule(steps) or self._allocate(steps, addresses(steps, self.space))
            except OutOfMemory:
                steps, self._spills = fitted(steps, self.space)
                places, entries = self._schedule(steps) or self._allocate(steps, addresses(steps, self.space))
            self._laid_out = wanted, places, entries
        return places, entries

    def _schedule(self, steps: list[ProgramStep]) -> tuple[dict[int, int], list[Entry]] | None:
        """Return addresses and entries of a scheduled order; None if no such order fits, though the program's does."""
        if self.order != "scheduled":
            return None
        ordered, tried = [], []
        for own in self._fewer(steps):
            if own in tried:
                continue
            tried.append(own)
            first, left = len(ordered), {storage: list(SHARES) for storage in ON_CHIP}
            while all(left.values()):
                ordered.append(schedule(own, self.space, {storage: shares[0] for storage, shares in left.items()}))
                try:
                    return self._allocate(ordered[-1], addresses(ordered[-1], self.space, packed=False))
                except OutOfMemory as refusal:
                    left[refusal.storage].pop(0)
                if len(ordered) == first + 1 and self._places(own) is None:
                    break  # what does not fit in program order does not fit with smaller shares
        # Packed buffers delay early loads more than a small share of the memories does.
        for own in ordered:
            places = self._places(own)
            if places is not None:
                return self._allocate(own, places)
        return None

    def _fewer(self, steps: list[ProgramStep]) -> Iterator[list[ProgramStep]]:
        """Yield the steps without repeats and with merged loads, without repeats, and as they are.

        The fewer steps there are, the longer some tiles live, so that the program may not fit.
        """
        found = []
        for share in (KEPT, 0):
            found.append(without_repeats(steps, self.space, share)[0])
            if self.config.packet_interval:
                yield merged_loads(found[-1], self.space)
        yield from (*found, steps)

    def _places(self, steps: list[ProgramStep]) -> dict[int, int] | None:
        try:
            return addresses(steps, self.space)
        except OutOfMemory:
            return None

    def _allocate(self, steps: list[ProgramStep], places: dict[int, int]) -> tuple[dict[int, int], list[Entry]]:
        sequence = Synchronisation(self.config)

        def place(storage: Storage, address: int) -> int:
            buffer = buffer_of(address)
            return places[buffer] + offset_of(address) if buffer else address

        for step in steps:
            sequence.append(step._replace(instruction=step.instruction.moved(place)))
        return places, sequence.entries
