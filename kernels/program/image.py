"""Image of a program: the bytes that HBM must contain when the core boots, and their symbols.

From the boot address on: header, tensors, records of the queues, control program. Other bytes of HBM are arbitrary.

A record that rounds stochastically has a seed, and a number for its elements. Before a run, the host may write another
seed (`Image.seeded`). Before each run of a section in a loop of a `Program.stochastic`, copies write how many such runs
there were into the upper half of the element numbers, which the other instructions of these queues ignore.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np

from neuroncore_rtl.kernels.collector import collector_paused
from neuroncore_rtl.kernels.control import Block, ControlOperation, ControlProgram, flow_program, stock_program
from neuroncore_rtl.kernels.control.flow import Code, Label
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.flow import LOOP_ROUNDS, Register
from neuroncore_rtl.kernels.program.program import HEADER_BYTES, Program
from neuroncore_rtl.kernels.program.spilling import Spill
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import UINT8
from neuroncore_rtl.spec.isa import HEADER_BITS, RECORD_BYTES, Record, Storage
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_FIELDS
from neuroncore_rtl.spec.isa.elementwise.opcode import OPCODES
from neuroncore_rtl.spec.isa.fields import place_of
from neuroncore_rtl.spec.memory_map import BOOT_WORDS, IMAGE_MAGIC, LOCAL_BASE

__all__ = ["Image", "build_image"]

MOST_RECORDS = (1 << 16) - 1
"""Records per block: the count of a doorbell has 16 bits."""

assert 4 * BOOT_WORDS <= HEADER_BYTES


def _place(field: str, unit: int) -> tuple[int, int]:
    """Return the unit of so many bits that has the lowest bit of an instruction's field in a record, and the bit."""
    return divmod(HEADER_BITS + place_of(ELEMENTWISE_FIELDS, field), unit)


_DRAWN = range(_place("index", 8)[0] + 5, _place("index_partition", 8)[0])
"""Bytes of a record that are of the upper half of its element numbers only; DMA writes whole bytes."""


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

    def seeded(self, seed: int) -> bytearray:
        """Return the bytes with another seed, 32 bits, in every record that rounds stochastically."""
        data = bytearray(self.data)
        records = np.frombuffer(data, np.uint64).reshape(-1, RECORD_BYTES // 8)
        (flag, bit), (place, low) = _place("stochastic", 64), _place("seed", 64)
        mask, one = np.uint64(0xFFFF_FFFF << low), np.uint64(1)
        for block in self.blocks:
            first = (block.address - self.base) // RECORD_BYTES
            words = records[first : first + block.count]
            draws = np.isin(words[:, 0] & np.uint64(7), [*OPCODES]) & (words[:, flag] >> np.uint64(bit) & one > 0)
            words[draws, place] = words[draws, place] & ~mask | np.uint64(seed << low)
        return data


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

    def add(parts: Sequence[_Part]) -> None:
        nonlocal data
        counts = _semaphore_counts(parts, program.semaphores)
        for section, queue, part in parts:
            blocks.append(Block(queue, base + len(data), len(part), section, program.semaphores[: counts[section]]))
            records.append(tuple(record for _, record in part))
            entries.append(tuple(entry for entry, _ in part))
            data += b"".join(record.encode(config) for record in records[-1])

    parts = _parts(program)
    add(parts)
    if flow and program.flow.draws is not None:
        placed = [(block, part) for block, (_, _, part) in zip(blocks, parts, strict=True)]
        flow, added = _redrawn(flow, program.flow.draws, placed, program.dma_queues)
        add(added)
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


_Own = list[tuple[Entry, Record]]
"""At most a block of records."""

_Part = tuple[int, int, _Own]
"""Section, queue, and records of theirs."""


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


def _redrawn(
    flow: Sequence[ControlOperation], register: Register, parts: Sequence[tuple[Block, _Own]], queues: Sequence[int]
) -> tuple[tuple[ControlOperation, ...], list[tuple[int, int, _Own]]]:
    """Return operations that give each section in a loop new random words before it runs, and their sections.

    `register` counts the runs; `parts` are the program's blocks; `queues` are those for the new sections, which are
    returned with the queue and the part of each block.
    """
    source = replace(register.word, format=UINT8, shape=(1, len(_DRAWN)), steps=(0, 1))
    depth, found, starts = 0, [], []
    added: list[tuple[int, int, _Own]] = []
    drawing: dict[int, list[tuple[Block, _Own]]] = {}
    for block, part in parts:
        if any(record.instruction.stochastic for _, record in part):
            drawing.setdefault(block.section, []).append((block, part))
    section = max((block.section for block, _ in parts), default=0)
    for one in flow:
        starts.append(len(found))
        depth += (one.code in (Code.UNLESS, Code.UNLESS_LESS)) - (one.code == Code.AGAIN)
        if one.code == Code.RUN and depth and one.a in drawing:
            section += 1
            found += [ControlOperation(Code.ADD, register.address, 1), ControlOperation(Code.RUN, section)]
            for (block, part), queue in zip(drawing[one.a], cycle(queues), strict=False):
                shape, steps = (1, block.count, len(_DRAWN)), (0, RECORD_BYTES, 1)
                place = {"address": block.address + _DRAWN[0], "shape": shape, "steps": steps}
                copy = dma_copy(HbmTensor(name="numbers", format=UINT8, **place), source)
                own = {"section": section, "queue": queue, "lane": None, "instruction": copy, "waits": []}
                entry = replace(part[0][0], **own, buffers=(0, 0))  # both places are fixed
                added.append((section, queue, [(entry, Record(instruction=copy))]))
        found.append(one)
    labels = (one.label and Label(starts[one.label.place]) for one in found)
    return tuple(replace(one, label=label) for one, label in zip(found, labels, strict=True)), added


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % RECORD_BYTES)
