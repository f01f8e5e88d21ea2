"""Image of a program: the bytes that HBM must contain when the core boots, and their symbols.

From the boot address on: header, tensors, records of the queues, control program. Other bytes of HBM are arbitrary.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.kernels.collector import collector_paused
from neuroncore_rtl.kernels.control import Block, ControlOperation, ControlProgram, flow_program, stock_program
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.flow import LOOP_ROUNDS
from neuroncore_rtl.kernels.program.program import HEADER_BYTES, Program
from neuroncore_rtl.kernels.program.source import located
from neuroncore_rtl.kernels.program.spilling import Spill
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Record, Storage
from neuroncore_rtl.spec.memory_map import BOOT_WORDS, IMAGE_MAGIC, LOCAL_BASE

__all__ = ["Image", "build_image"]

MOST_RECORDS = (1 << 16) - 1
"""Records per block: the count of a doorbell has 16 bits."""

assert 4 * BOOT_WORDS <= HEADER_BYTES


@dataclass(frozen=True)
class Image:
    """Image of a program: the bytes to write to HBM, and tables that describe them.

    `base` is the HBM address of the first byte, where the core boots; `blocks` and their `records` are in the order in
    which the control program starts them. `control` has the addresses of the control program's symbols. For tools,
    `entries` has the entries of each block and `space` the allocator; they may be empty and None. `runs` is as in
    `build_image`. `flow` are the control operations of a program with registers or loops; all loops together may run
    `rounds` rounds. `spills` are the tiles that leave SBUF or PSUM for lack of room.
    """

    config: Config
    base: int
    data: bytes
    blocks: tuple[Block, ...]
    records: tuple[Sequence[Record], ...]
    control: Mapping[str, int]
    entries: tuple[Sequence[Entry], ...] = ()
    space: Allocator | None = None
    runs: tuple[int, ...] | None = None
    flow: tuple[ControlOperation, ...] | None = None
    registers: tuple[Tensor, ...] = ()
    rounds: int = LOOP_ROUNDS
    spills: tuple[Spill, ...] = ()

    def locate(self, address: int) -> tuple[int, Record]:
        """Return the record at an HBM address, and the index of its queue; KeyError if no record starts there."""
        block, number = self._place(address)
        return self.blocks[block].queue, self.records[block][number]

    def entry(self, address: int) -> Entry:
        """Return the entry of the record at an HBM address; KeyError if no record starts there."""
        block, number = self._place(address)
        return self.entries[block][number]

    def _place(self, address: int) -> tuple[int, int]:
        block = bisect_right(self.blocks, address, key=lambda block: block.address) - 1
        if block >= 0:
            number, rest = divmod(address - self.blocks[block].address, RECORD_BYTES)
            if rest == 0 and number < self.blocks[block].count:
                return block, number
        raise KeyError(f"no record starts at address {address:#x}")

    def memory(self, size: int | None = None) -> np.ndarray:
        """Return HBM with the image, uint8 [size] from address 0; `size` None for the smallest size that holds it."""
        memory = np.zeros(self.base + len(self.data) if size is None else size, np.uint8)
        self.store(memory)
        return memory

    def store(self, memory: np.ndarray) -> None:
        """Write the image into HBM, uint8 from address 0."""
        memory[self.base : self.base + len(self.data)] = np.frombuffer(self.data, np.uint8)


@located
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

    `contents` are pairs of a tensor in HBM, or a view of one, and the initial codes; other tensors are zero. `runs` are
    sections in the order in which the stock program runs them, with repeats; None for each once. `control` replaces the
    stock program; `arguments` returns its argument words, given the blocks. Raises ValueError if there are too few
    semaphores, `runs` names an unknown section, `runs` or `control` is given for a program with registers or loops, or
    the argument words do not fit.
    """
    config, base = program.config, program.base
    flow = None if program.flow.is_plain else tuple(program.flow.operations())
    if flow and (runs is not None or control is not None):
        raise ValueError("runs and control must be None for a program with registers or loops")
    memory = np.zeros(program.end(Storage.HBM) - base, np.uint8)
    for tensor, codes in contents:
        replace(tensor, address=tensor.address - base).elements(memory)[...] = codes
    data = _aligned(memory.tobytes())
    blocks, records, entries = [], [], []
    parts = _parts(program)
    counts = _semaphore_counts(parts, program.semaphores)
    for section, queue, part in parts:
        blocks.append(Block(queue, base + len(data), len(part), section, program.semaphores[: counts[section]]))
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
        raise ValueError(f"control must need a local memory of at most {config.local_bytes} bytes, not {found}")
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
        spills=tuple(program.spills),
    )


_Part = tuple[int, int, list[tuple[Entry, Record]]]
"""Section, queue, and at most a block of their records."""


def _parts(program: Program) -> list[_Part]:
    """Split entries and records into parts, so that each waits only for records of blocks that are already started."""
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


def _semaphore_counts(parts: Sequence[_Part], semaphores: range) -> dict[int, int]:
    counts: dict[int, int] = {}
    for section, _, part in parts:
        used = (1 + semaphores.index(update.semaphore) for _, record in part for update in record.updates)
        counts[section] = max(counts.get(section, 0), max(used, default=0))
    return counts


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % RECORD_BYTES)
