"""The image of a program: the bytes that HBM holds when the core starts, and where in them things are.

From its base, the boot address, on: the header, the tensors, the queues' records, the control program. Whatever else is
in HBM does not matter.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.kernels.control import Block, ControlOperation, ControlProgram, flow_program, stock_program
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.collector import collector_paused
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.flow import LOOP_ROUNDS
from neuroncore_rtl.kernels.program.program import HEADER_BYTES, Program
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Record, Storage
from neuroncore_rtl.spec.memory_map import BOOT_WORDS, IMAGE_MAGIC, LOCAL_BASE

__all__ = ["Image", "build_image"]

MOST_RECORDS = (1 << 16) - 1
"""Records of a block: a doorbell's count has 16 bits."""

assert 4 * BOOT_WORDS <= HEADER_BYTES


@dataclass(frozen=True)
class Image:
    """What to put into HBM, and its symbols.

    Arguments:
        config: the machine that it is for.
        base: HBM address of its first byte, where the core boots.
        data: its bytes.
        blocks: the queues' records, in the order in which the control program starts them, section by section.
        records: for each block its records.
        control: the control program's symbols, by name.
        entries: for each block the entries that its records were made of, for tools that tell of them; none if it was
            not made of a program.
        space: where the program's tensors were named, likewise.
        runs: numbers of sections, in the order in which the stock program runs them; None: every one once.
        flow: what the control program does, of a program with registers or loops; None: it runs sections alone.
        registers: of such a program, which the control program writes.
        rounds: the most that its loops may go round together.
    """

    config: Config
    base: int
    data: bytes
    blocks: tuple[Block, ...]
    records: tuple[tuple[Record, ...], ...]
    control: Mapping[str, int]
    entries: tuple[tuple[Entry, ...], ...] = ()
    space: Allocator | None = None
    runs: tuple[int, ...] | None = None
    flow: tuple[ControlOperation, ...] | None = None
    registers: tuple[Tensor, ...] = ()
    rounds: int = LOOP_ROUNDS

    def locate(self, address: int) -> tuple[int, Record]:
        """Return the queue and the record at an HBM address.

        Raises:
            KeyError: if no record starts there.
        """
        block, number = self._place(address)
        return self.blocks[block].queue, self.records[block][number]

    def entry(self, address: int) -> Entry:
        """Return the entry that the record at an HBM address was made of.

        Raises:
            KeyError: if no record starts there.
        """
        block, number = self._place(address)
        return self.entries[block][number]

    def _place(self, address: int) -> tuple[int, int]:
        """Return the numbers of a block and of its record, by the record's address."""
        block = bisect_right(self.blocks, address, key=lambda block: block.address) - 1
        if block >= 0:
            number, rest = divmod(address - self.blocks[block].address, RECORD_BYTES)
            if rest == 0 and number < self.blocks[block].count:
                return block, number
        raise KeyError(f"address must be that of a record, not {address:#x}")

    def memory(self, size: int | None = None) -> np.ndarray:
        """Return HBM with the image in it, uint8 [size] from address 0; None: as much as the image needs."""
        memory = np.zeros(self.base + len(self.data) if size is None else size, np.uint8)
        self.store(memory)
        return memory

    def store(self, memory: np.ndarray) -> None:
        """Put it into HBM, uint8 from address 0, which must reach as far."""
        memory[self.base : self.base + len(self.data)] = np.frombuffer(self.data, np.uint8)


@collector_paused()
def build_image(
    program: Program,
    contents: Sequence[tuple[HbmTensor, np.ndarray]] = (),
    *,
    runs: Sequence[int] | None = None,
    control: ControlProgram | None = None,
    arguments: Callable[[Sequence[Block]], Sequence[int]] = lambda blocks: (),
) -> Image:
    """Return the image of a program.

    Arguments:
        program: instructions and tensors.
        contents: tensors in HBM, or views of them, and the codes that they start with; the others are zero.
        runs: numbers of sections, in the order in which the stock program runs them, each as often as it is named;
            None: every one once.
        control: a compiled control program; None: the stock program.
        arguments: makes the words that stand behind a control program from the blocks.

    Raises:
        ValueError: if there are too few semaphores; if a section that is to be run is not there, or runs or a control
            program are given for a program that has registers or loops; if there is no room behind the control program
            for its arguments.
    """
    config, base = program.config, program.base
    flow = None if program.flow.is_plain else tuple(program.flow.operations())
    if flow and (runs is not None or control is not None):
        raise ValueError("runs and control must be None for a program with registers or loops, which has its own")
    memory = np.zeros(program.end(Storage.HBM) - base, np.uint8)
    for tensor, codes in contents:
        replace(tensor, address=tensor.address - base).elements(memory)[...] = codes
    data = _aligned(memory.tobytes())
    blocks, records, entries = [], [], []
    parts = _parts(program)
    counted = _counted(parts, program.semaphores)
    for section, queue, part in parts:
        blocks.append(Block(queue, base + len(data), len(part), section, program.semaphores[: counted[section]]))
        records.append(tuple(record for _, record in part))
        entries.append(tuple(entry for entry, _ in part))
        data += b"".join(record.encode(config) for record in records[-1])
    if flow:
        control, words = flow_program(blocks, flow, program.flow.rounds, config.local_bytes)
    else:
        stock = control is None
        control, words = stock_program(blocks, runs, config.local_bytes) if stock else (control, arguments(blocks))
    text = control.image(words)
    if (found := control.symbols.get("stack_top", LOCAL_BASE) - LOCAL_BASE) > config.local_bytes:
        raise ValueError(f"control must be for a local memory of {config.local_bytes} bytes, not of {found}")
    header = (IMAGE_MAGIC, len(text), len(data), config.rows, config.columns, config.dma_engines, config.cores)
    header = b"".join(word.to_bytes(4, "little") for word in header)
    return Image(
        config=config,
        base=base,
        data=_aligned(header + data[len(header) :] + text),
        blocks=tuple(blocks),
        records=tuple(records),
        control=control.symbols,
        entries=tuple(entries),
        space=program.space,
        runs=None if runs is None else tuple(runs),
        flow=flow,
        registers=tuple(register.word for register in program.flow.registers),
        rounds=program.flow.rounds,
    )


_Part = tuple[int, int, list[tuple[Entry, Record]]]
"""The number of a section, of a queue, and of the records of that queue in it as many as a block holds."""


def _parts(program: Program) -> list[_Part]:
    """Return entries and records in parts that fit a block, by the place of a part's first record.

    Started in this order, a block only waits for records of blocks that were started before.
    """
    parts: list[_Part] = []
    current: dict[tuple[int, int], list[tuple[Entry, Record]]] = {}
    for entry, record in zip(program.entries, program.records(), strict=True):
        place = entry.section, entry.queue
        part = current.get(place)
        if part is None or len(part) == MOST_RECORDS:
            part = current[place] = []
            parts.append((*place, part))
        part.append((entry, record))
    return parts


def _counted(parts: Sequence[_Part], semaphores: range) -> dict[int, int]:
    """Return how many of the semaphores, from the first one on, each section counts on."""
    counted: dict[int, int] = {}
    for section, _, part in parts:
        used = (1 + semaphores.index(update.semaphore) for _, record in part for update in record.updates)
        counted[section] = max(counted.get(section, 0), max(used, default=0))
    return counted


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % RECORD_BYTES)
