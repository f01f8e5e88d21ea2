"""Handwritten images with a little work for each engine."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from neuroncore_rtl.kernels.control import Block, ControlProgram, compile_program, section_words
from neuroncore_rtl.kernels.program import Image, Program, build_image
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import RECORD_BYTES, DmaCopy, DmaTensor, Opcode, Record, Storage, Update, Wait
from neuroncore_rtl.spec.memory_map import IMAGE_MAGIC
from neuroncore_rtl.tb.stimulus.core_programs import random_core_program
from tests.oracles.copies import word_copy

__all__ = [
    "ASLEEP", "CATCH", "DATA", "DMA0", "DMA1", "DONE", "DOORBELLS", "FAILED", "HOST", "LATE", "NEVER", "NUMBER",
    "PARTITIONS", "POLL", "REFUSED", "RESCUE", "RESULT", "RUN", "SCALAR", "SEMAPHORE", "SLOT", "TENSOR", "TIMER",
    "TRAPS", "TWICE", "VECTOR", "WATCHDOG_LIMIT", "WINDOWS", "Work", "cases", "hand_image", "hbm_place", "place",
    "random_image", "watched",
]  # fmt: skip

TENSOR, VECTOR, SCALAR, DMA0, DMA1 = range(5)

SLOT = 0x4000
DATA, RESULT, RECORDS = 0x400, 0x800, 0x1000  # offsets in a slot

DONE, NEVER, FAILED = 5, 6, 7
"""Semaphores, incremented when the work is done, by a record that must not execute, and by the failing record."""

PARTITIONS = 4

CASES = Path(__file__).with_name("core_cases.c")
RUN, CATCH, TRAPS, HOST, TWICE, WINDOWS, TIMER, SEMAPHORE, POLL, DOORBELLS, REFUSED, RESCUE = range(12)
LATE, ASLEEP, NUMBER = range(12, 15)  # cases of core_cases.c

WATCHDOG_LIMIT = 2000


def cases() -> ControlProgram:
    return compile_program([CASES])


def watched(program: Program, contents=(), limit: int = WATCHDOG_LIMIT) -> Image:
    """Return the image of a program, started by the control program core_cases.c with its watchdog."""
    return build_image(program, contents, control=cases(), arguments=lambda blocks: [RUN, limit, *_sections(blocks)])


def _sections(blocks: Sequence[Block]) -> list[int]:
    return [*chain.from_iterable(section_words(blocks).values()), 0]


def random_image(rng: np.random.Generator, config: Config, instructions: int, base: int) -> Image:
    random = random_core_program(rng, config, instructions, base=base)
    return watched(random.program, random.contents)


def hand_image(
    config: Config,
    base: int,
    queues: Sequence[tuple[int, Sequence[Record | bytes]]],
    contents: Mapping[int, bytes] = {},
    *,
    blocks_elsewhere: Sequence[Block] = (),
    case: int = RUN,
    limit: int = WATCHDOG_LIMIT,
    more: Sequence[int] = (),
) -> Image:
    """Return an image at a multiple of `SLOT` that runs a case of core_cases.c.

    `queues` are queue and records of each block, in order of their start, followed by `blocks_elsewhere`; `contents`
    are bytes by offset in the slot; `more` are additional words for the case.
    """
    data, blocks = bytearray(SLOT), []
    place = RECORDS
    for queue, records in queues:
        blocks.append(Block(queue, base + place, len(records)))
        for record in records:
            data[place : place + RECORD_BYTES] = record if isinstance(record, bytes) else record.encode(config)
            place += RECORD_BYTES
    control = cases()
    text = control.image([case, limit, *_sections([*blocks, *blocks_elsewhere]), *more])
    header = (IMAGE_MAGIC, len(text), place, config.rows, config.columns, config.dma_engines, config.cores, 0)
    assert place + len(text) <= SLOT
    for start, part in [(0, np.array(header, "<u4").tobytes()), (place, text), *contents.items()]:
        data[start : start + len(part)] = part
    listed = tuple(tuple(records) for _, records in queues)
    return Image(
        config=config, base=base, data=bytes(data), blocks=tuple(blocks), records=listed, control=control.symbols
    )


def hbm_place(address: int, steps: tuple[int, ...] = (4, 1), fmt=FP32) -> DmaTensor:
    return DmaTensor(format=fmt, storage=Storage.HBM, address=address, steps=steps)


def place(address: int, fmt=FP32) -> DmaTensor:
    return DmaTensor(format=fmt, storage=Storage.SBUF, address=address, steps=(1, 1), axis=0)


class Work:
    """A chain of records on all engines: `queues` has each queue's records, `contents` bytes by offset in the slot."""

    def __init__(self, config: Config, base: int, rng: np.random.Generator):
        self.config, self.base = config, base
        values = rng.normal(size=(PARTITIONS, 4)).astype(np.float32)
        self.contents = {DATA: values.tobytes(), DATA + 0x80: np.arange(8, dtype="<u4").tobytes()}
        self.queues: list[list[Record | bytes]] = [[] for _ in range(3 + config.dma_engines)]
        shape, tile = (PARTITIONS, 4), {"format": BF16, "k": PARTITIONS, "m": 4}
        steps = [
            (DMA0, DmaCopy(shape=shape, src=hbm_place(base + DATA), dst=place(0, fmt=BF16))),
            (TENSOR, isa.LoadStationary(**tile, address=0)),
            (TENSOR, isa.MultiplyMoving(**tile, n=4, address=0, stride=2, psum=0)),
            (VECTOR, self.elementwise(Opcode.TENSOR_COPY, 0, 0x40, Storage.PSUM)),
            (SCALAR, self.elementwise(Opcode.ACTIVATE, 0x40, 0x80)),
            (DMA1, DmaCopy(shape=shape, src=place(0x80), dst=hbm_place(base + RESULT))),
        ]
        for number, (queue, instruction) in enumerate(steps):
            waits = (Wait(number - 1, 1),) if number else ()
            self.queues[queue].append(Record(instruction=instruction, waits=waits, updates=(Update(number),)))

    def elementwise(self, opcode: Opcode, address: int, dst: int, storage: Storage = Storage.SBUF) -> isa.Elementwise:
        a, out = isa.Access(format=FP32, address=address, storage=storage), isa.Access(format=FP32, address=dst)
        scale = {"s0": 0x3F80_0000} if opcode == Opcode.ACTIVATE else {}
        return isa.Elementwise(opcode=opcode, partitions=PARTITIONS, shape=(4,), a=a, dst=out, **scale)

    def last(self, queue: int, elsewhere: bool = False):
        """Return an instruction that is not in the work; its result is at one of two addresses, by `elsewhere`."""
        match queue:
            case 0:
                psum = 512 + 512 * elsewhere
                return isa.MultiplyMoving(format=BF16, k=PARTITIONS, m=4, n=4, address=0, stride=2, psum=psum)
            case 1:
                return self.elementwise(Opcode.TENSOR_COPY, 0x40, 0xC0 + 0x200 * elsewhere)
            case 2:
                return self.elementwise(Opcode.ACTIVATE, 0x40, 0x100 + 0x200 * elsewhere)
        return word_copy(self.base + DATA, self.base + RESULT + 0x80 + 4 * queue + 0x40 * elsewhere)

    def finished(self) -> Image:
        after = [Record(instruction=self.last(queue), waits=(Wait(DONE, 1),)) for queue in range(len(self.queues))]
        queues = [(queue, [*records, after[queue]]) for queue, records in enumerate(self.queues)]
        return hand_image(self.config, self.base, queues, self.contents)

    def broken(self, queue: int, *records: Record | bytes, gated: bool = True, held: bool = False, **options) -> Image:
        """Return the image of the work, followed by records on a queue; the last of them must fail.

        The additional records start when the work is done. Later records must not be executed: if `gated`, a record on
        every other queue waits for a signal of the failing one; if `held`, also one on its queue.
        """
        queues = [list(part) for part in self.queues]
        queues[queue] += [Record(instruction=self.last(queue), waits=(Wait(DONE, 1),)), *records]
        for other, part in enumerate(queues):
            waits = (Wait(FAILED, 1),) if held or other != queue else ()
            if gated or other == queue:
                part.append(Record(instruction=self.last(other, elsewhere=True), waits=waits))
        return hand_image(self.config, self.base, list(enumerate(queues)), self.contents, **options)
