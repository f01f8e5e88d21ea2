"""Error cases of a core, and the expected reports."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from neuroncore_rtl.kernels.control import Block
from neuroncore_rtl.kernels.program import Image
from neuroncore_rtl.run.harness.cores import CoreFault
from neuroncore_rtl.spec import isa, memory_map
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, Engine, Opcode, Record, Rule, Storage, Update, Wait
from neuroncore_rtl.spec.isa.record import HEADER_BITS, RECORD_BYTES, SEMAPHORE_MAX
from tests.oracles.copies import word_copy
from tests.run.harness import core_images as images
from tests.run.harness.core_images import DMA0, DMA1, DONE, NEVER, SCALAR, TENSOR, VECTOR, Work, hbm_place, place

__all__ = ["CASES", "CONFIG", "HBM_END", "HEADERS", "SEED", "ZONE", "Case", "works"]

CONFIG = PRESETS["tiny"]
SEED = 20

ZONE = 8 << 20  # HBM answers SLVERR from here to `HBM_END`, and DECERR above
HBM_END = 9 << 20

ROWS = (images.PARTITIONS, 4)

Maker = Callable[[Work, int], list[Record | bytes]]
"""Function of a `Work` and a queue; it returns records to append to the queue, and the last of them fails."""


@dataclass(frozen=True)
class Case:
    """Failing records of a queue, the expected cause, detail and message of the error, and options of `Work.broken`."""

    cause: int
    queue: int
    records: Maker
    text: str
    detail: int = 0
    options: dict = field(default_factory=dict)

    def image(self, work: Work) -> Image:
        return work.broken(self.queue, *self.records(work, self.queue), **self.options)

    def fault(self, image: Image) -> CoreFault:
        if "blocks_elsewhere" in self.options:
            return CoreFault(self.queue, self.cause, self.options["blocks_elsewhere"][0].address, self.detail)
        (block,) = (block for block in image.blocks if block.queue == self.queue)
        return CoreFault(self.queue, self.cause, block.address + RECORD_BYTES * (block.count - 2), self.detail)


def record(instruction, *updates, waits=()) -> Record:
    return Record(instruction=instruction, waits=tuple(waits), updates=updates or (Update(images.FAILED),))


def one(instruction) -> Maker:
    return lambda work, queue: [record(instruction)]


def nothing(work, queue):
    return []


def usual(*updates, waits=()) -> Maker:
    return lambda work, queue: [record(work.last(queue), *updates, waits=waits)]


def changed(**fields) -> Maker:
    return lambda work, queue: [record(replace(work.last(queue, elsewhere=True), **fields))]


def with_bits(place, width, value, waits=()) -> Maker:
    def make(work, queue):
        word = int.from_bytes(record(work.last(queue), waits=waits).encode(CONFIG), "little")
        word ^= (word >> place ^ value) % (1 << width) << place
        return [word.to_bytes(RECORD_BYTES, "little")]

    return make


for_engine = partial(with_bits, 0, 3)
with_opcode = partial(with_bits, HEADER_BITS, 6)


def reading(address, into=0x140) -> Maker:
    return one(DmaCopy(shape=ROWS, src=hbm_place(address), dst=place(into)))


def writing(address) -> Maker:
    return one(DmaCopy(shape=ROWS, src=place(0x80), dst=hbm_place(address)))


def indexed(limit, gather) -> Maker:
    def make(work, queue):
        index = isa.DmaIndex(address=0x1C0, limit=limit)
        table, rows = hbm_place(work.base + images.RESULT + 0x100), place(0x1D0)
        source, target = hbm_place(work.base + images.DATA + 0x80, (1, 1), INT32), place(index.address, fmt=INT32)
        numbers = DmaCopy(shape=(images.PARTITIONS, 1), src=source, dst=target)
        move = {"src": table, "dst": rows, "gather": index} if gather else {"src": rows, "dst": table, "scatter": index}
        return [Record(instruction=numbers), record(DmaCopy(shape=ROWS, **move))]

    return make


def operand(address, storage=Storage.SBUF) -> isa.Access:
    return isa.Access(format=FP32, address=address, storage=storage)


def overflowing(work, queue):
    return [record(work.last(queue), Update(9, SEMAPHORE_MAX)), record(work.last(queue), Update(9))]


def falling_short(work, queue):
    return [record(work.last(queue), Update(10, 300)), record(work.last(queue), waits=[Wait(10, 301)])]


ALONE, HELD, CATCH = {"gated": False}, {"held": True}, {"case": images.CATCH}
TOP, NO_ROOM, BEYOND = (1 << 40) - 16, CONFIG.sbuf_bytes - 12, CONFIG.psum_bytes - 12
OUTSIDE = isa.LoadStationary(format=BF16, k=images.PARTITIONS, m=4, address=CONFIG.sbuf_bytes)

CASES = {
    "stationary operand beyond SBUF": Case(Rule.RANGE, TENSOR, one(OUTSIDE), "load_stationary format=bf16"),
    "words beyond a bank of PSUM": Case(Rule.RANGE, TENSOR, changed(psum=509), "multiply_moving format=bf16"),
    "INT8 with weights that are not": Case(
        Rule.STATE, TENSOR, changed(format=INT8, stride=1), "multiply_moving format=int8"),
    "vector engine beyond SBUF": Case(
        Rule.RANGE, VECTOR, changed(dst=operand(NO_ROOM)),
        f"tensor_copy partitions=4 shape=4 dst=sbuf[0,{NO_ROOM:#x}]"),
    "vector engine on partitions that do not exist": Case(
        Rule.PARTITIONS, VECTOR, changed(partitions=5), "tensor_copy partitions=5"),
    "scalar engine beyond PSUM": Case(
        Rule.RANGE, SCALAR, changed(a=operand(BEYOND, Storage.PSUM)), f"a=psum[0,{BEYOND:#x}]"),
    "copy beyond SBUF": Case(Rule.RANGE, DMA0, reading(0, NO_ROOM), "dma_copy shape=4x4"),
    "copy beyond all addresses": Case(Rule.RANGE, DMA1, reading(TOP), f"src=hbm[{TOP:#x}]"),
    "more columns than there are": Case(Rule.SHAPE, TENSOR, changed(m=5), "m=5"),
    "scalar engine on partitions that do not exist": Case(Rule.PARTITIONS, SCALAR, changed(partitions=5), "activate"),
    "copy of half a word and half of the next": Case(Rule.ALIGNMENT, DMA0, one(word_copy(2, 4)), "src=hbm[0x2]"),
    "no opcode of the tensor engine": Case(Rule.OPCODE, TENSOR, with_bits(HEADER_BITS, 2, 3), "opcode 3"),
    "no opcode at all": Case(Rule.OPCODE, VECTOR, with_opcode(63), "opcode 63"),
    "opcode of the vector engine": Case(Rule.OPCODE, SCALAR, with_opcode(Opcode.MEMSET), "memset"),
    "opcode of the scalar engine": Case(Rule.OPCODE, VECTOR, with_opcode(Opcode.ACTIVATE), "activate"),
    "no opcode of a DMA engine": Case(Rule.OPCODE, DMA0, with_opcode(47), "opcode 47"),
    "record for the scalar engine": Case(
        Cause.ENGINE, VECTOR, for_engine(Engine.SCALAR), "the record is for SCALAR", Engine.SCALAR),
    "record for no engine": Case(Cause.ENGINE, DMA1, for_engine(0), "the record is for none, 0"),
    "record for a DMA engine": Case(Cause.ENGINE, TENSOR, for_engine(Engine.DMA), "the record is for DMA", Engine.DMA),
    "record for another engine, that would wait": Case(
        Cause.ENGINE, DMA0, for_engine(Engine.VECTOR, [Wait(NEVER, 1)]), "the record is for VECTOR", Engine.VECTOR),
    "semaphore above its maximum": Case(Cause.SEMAPHORE, VECTOR, overflowing, "tensor_copy partitions=4", 9, HELD),
    "semaphore below 0": Case(
        Cause.SEMAPHORE, DMA0, usual(Update(10, 3), Update(10, 4, isa.UpdateOp.SUBTRACT)),
        "semaphore 10 would leave its range", 10, HELD),
    "HBM answers a read with SLVERR": Case(Cause.AXI, DMA0, reading(ZONE), f"src=hbm[{ZONE:#x}]"),
    "HBM answers a write with SLVERR": Case(Cause.AXI, DMA1, writing(ZONE + 40), f"dst=hbm[{ZONE + 40:#x}]"),
    "HBM answers in the midst of a read with SLVERR": Case(Cause.AXI, DMA1, reading(ZONE - 32), "dma_copy"),
    "HBM ends before a read": Case(Cause.AXI, DMA1, reading(HBM_END), "dma_copy"),
    "HBM ends before a write": Case(Cause.AXI, DMA0, writing(HBM_END + 4096), "dma_copy"),
    "HBM answers a fetch with SLVERR": Case(
        Cause.FETCH, VECTOR, nothing, "beyond HBM", options={"blocks_elsewhere": [Block(VECTOR, ZONE, 2)]}),
    "HBM ends before a record": Case(
        Cause.FETCH, DMA1, nothing, "beyond HBM", options={"blocks_elsewhere": [Block(DMA1, HBM_END, 1)]}),
    "gathered row beyond the table": Case(Cause.INDEX, DMA0, indexed(2, True), "INDEX (row 2)", 2),
    "scattered row beyond the table": Case(Cause.INDEX, DMA1, indexed(3, False), "INDEX (row 3)", 3),
    "semaphore too low": Case(
        Cause.WATCHDOG, SCALAR, usual(waits=[Wait(DONE, 2)]), "wait s5>=2", DONE | 2 << 8 | 1 << 24, ALONE),
    "semaphore too low, of whose value the detail has 8 bits": Case(
        Cause.WATCHDOG, SCALAR, falling_short, "wait s10>=301", 10 | 301 << 8 | (300 & 255) << 24, ALONE),
    "missing signal": Case(
        Cause.WATCHDOG, DMA0, usual(waits=[Wait(DONE, 1), Wait(NEVER, 300)]),
        "(semaphore 6 must be at least 300; its lowest 8 bits are 0)", NEVER | 300 << 8, ALONE),
    "deadlock": Case(Cause.WATCHDOG, TENSOR, usual(waits=[Wait(NEVER, 1)]), "multiply_moving", NEVER | 1 << 8),
    "error that interrupts": Case(Rule.RANGE, VECTOR, changed(dst=operand(CONFIG.sbuf_bytes)), "RANGE", options=CATCH),
    "watchdog that interrupts": Case(
        Cause.WATCHDOG, VECTOR, usual(waits=[Wait(NEVER, 7)]), "wait s6>=7", NEVER | 7 << 8, ALONE | CATCH),
}  # fmt: skip

HEADERS = (
    *((0, 0x3243_4E51), (1, 6), (1, memory_map.LOCAL_BYTES + 4), (2, HBM_END), (2, 64), (3, CONFIG.rows + 1), (4, 8)),
    *((5, CONFIG.dma_engines + 1), (6, 2), (7, 1)),
)
"""Illegal header words of an image: index and value."""


def works(count):
    rng = np.random.default_rng(SEED)
    return [Work(CONFIG, images.SLOT * number, rng) for number in range(count)]
