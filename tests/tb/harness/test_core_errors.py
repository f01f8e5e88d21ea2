# amaranth: UnusedElaboratable=no

"""What can go wrong on the core: it stops, says which record of which queue failed and why, and runs on after a reset.

All cases run in one simulation, and after each of them a sound image does; every byte of HBM, SBUF and PSUM is golden's
in the end, so nothing was executed behind an error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from neuroncore_rtl.kernels.control import Block
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import PRESETS, PSUM_BYTES, SBUF_BYTES
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, Engine, Opcode, Record, Rule, Storage, Update, Wait
from neuroncore_rtl.spec.isa.record import HEADER_BITS, RECORD_BYTES, SEMAPHORE_MAX
from neuroncore_rtl.tb.check.core_batch import put_together, run_batch
from neuroncore_rtl.tb.check.core_fault import explained
from neuroncore_rtl.tb.harness.cores import CoreDevice, CoreFault, CoreWork
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.run import run as run_device
from tests.tb.harness import core_images as images
from tests.tb.harness.core_images import DMA0, DMA1, DONE, NEVER, SCALAR, TENSOR, VECTOR, Work, hbm_place, place

CONFIG = PRESETS["tiny"]
SEED = 20

ZONE = 8 << 20
"""From here to `HBM_END` HBM answers with SLVERR, and behind it with DECERR."""
HBM_END = 9 << 20

DEVICE = CoreDevice(machine=CONFIG)

BEHAVIOUR = Hbm(size=HBM_END, slverr=(ZONE, HBM_END), latency=12, stall=20, reorder=60, interleave=True, seed=SEED)

LIMIT = 150_000
"""Cycles of an image at most; the copy of what is on chip needs most of them."""

ROWS = (images.PARTITIONS, 4)

Maker = Callable[[Work, int], list[Record | bytes]]
"""Makes the records of a queue, the last of which fails, from the work before them."""


@dataclass(frozen=True)
class Case:
    """Something that fails.

    Arguments:
        cause: that must be reported. queue: the one that it must name. detail: likewise.
        records: makes the records of that queue.
        text: what the printed message must contain.
        options: of `Work.broken`.
    """

    cause: int
    queue: int
    records: Maker
    text: str
    detail: int = 0
    options: dict = field(default_factory=dict)

    def image(self, work: Work) -> Image:
        """Return the image that fails."""
        return work.broken(self.queue, *self.records(work, self.queue), **self.options)

    def fault(self, image: Image) -> CoreFault:
        """Return what must be reported of that image."""
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
    """A legal instruction of the queue."""
    return lambda work, queue: [record(work.last(queue), *updates, waits=waits)]


def changed(**fields) -> Maker:
    """An instruction of the queue with other fields."""
    return lambda work, queue: [record(replace(work.last(queue, elsewhere=True), **fields))]


def with_bits(place, width, value) -> Maker:
    """A record of the queue with other bits."""

    def make(work, queue):
        word = int.from_bytes(record(work.last(queue)).encode(CONFIG), "little")
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
    """A gather or scatter of rows 0, 1, 2, 3 of a table with fewer rows."""

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
    """Records of which the first fills a semaphore and the second overflows it."""
    full = Record(instruction=work.last(queue), updates=(Update(9, SEMAPHORE_MAX),))
    return [full, record(work.last(queue), Update(9))]


ALONE, HELD, CATCH = {"gated": False}, {"held": True}, {"case": images.CATCH}
TOP, NO_ROOM = (1 << 40) - 16, SBUF_BYTES - 12
OUTSIDE = isa.LoadStationary(format=BF16, k=images.PARTITIONS, m=4, address=SBUF_BYTES)

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
        Rule.RANGE, SCALAR, changed(a=operand(PSUM_BYTES - 12, Storage.PSUM)), f"a=psum[0,{PSUM_BYTES - 12:#x}]"),
    "copy beyond SBUF": Case(Rule.RANGE, DMA0, reading(0, NO_ROOM), "dma_copy shape=4x4"),
    "copy beyond all addresses": Case(Rule.RANGE, DMA1, reading(TOP), f"src=hbm[{TOP:#x}]"),
    "no opcode of the tensor engine": Case(Rule.OPCODE, TENSOR, with_bits(HEADER_BITS, 2, 3), "opcode 3"),
    "no opcode at all": Case(Rule.OPCODE, VECTOR, with_opcode(63), "opcode 63"),
    "opcode of the vector engine": Case(Rule.OPCODE, SCALAR, with_opcode(Opcode.MEMSET), "memset"),
    "opcode of the scalar engine": Case(Rule.OPCODE, VECTOR, with_opcode(Opcode.ACTIVATE), "activate"),
    "no opcode of a DMA engine": Case(Rule.OPCODE, DMA0, with_opcode(47), "opcode 47"),
    "record for the scalar engine": Case(
        Cause.ENGINE, VECTOR, for_engine(Engine.SCALAR), "the record is for SCALAR", Engine.SCALAR),
    "record for no engine": Case(Cause.ENGINE, DMA1, for_engine(0), "the record is for none, 0"),
    "record for a DMA engine": Case(Cause.ENGINE, TENSOR, for_engine(Engine.DMA), "the record is for DMA", Engine.DMA),
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
    "missing signal": Case(
        Cause.WATCHDOG, DMA0, usual(waits=[Wait(DONE, 1), Wait(NEVER, 300)]),
        "(semaphore 6 must be at least 300; its lowest 8 bits are 0)", NEVER | 300 << 8, ALONE),
    "deadlock": Case(Cause.WATCHDOG, TENSOR, usual(waits=[Wait(NEVER, 1)]), "multiply_moving", NEVER | 1 << 8),
    "error that interrupts": Case(Rule.RANGE, VECTOR, changed(dst=operand(SBUF_BYTES)), "RANGE", options=CATCH),
    "watchdog that interrupts": Case(
        Cause.WATCHDOG, VECTOR, usual(waits=[Wait(NEVER, 7)]), "wait s6>=7", NEVER | 7 << 8, ALONE | CATCH),
}  # fmt: skip

HEADERS = {0: 0x3243_4E51, 1: 6, 2: HBM_END, 3: CONFIG.rows + 1, 5: CONFIG.dma_engines + 1, 6: 2, 7: 1}
"""Words of an image's header, by their numbers, that it must not have. The program would lie beyond HBM: that counts as
word 0."""


def works(count):
    rng = np.random.default_rng(SEED)
    return [Work(CONFIG, images.SLOT * number, rng) for number in range(count)]


def test_every_error_names_its_record_and_the_core_recovers():
    """After each error, and none less, the next image runs right."""
    print(f"seed {SEED}")
    slots = iter(works(2 * len(CASES)))
    run, faults = [], {}
    for name, case in CASES.items():
        run.append(case.image(next(slots)))
        faults[name] = case.fault(run[-1])
        run.append(next(slots).finished())
    batch = run_batch(DEVICE, run, behaviour=BEHAVIOUR, limit=LIMIT)
    memory = put_together(run)
    wrong = list(batch.failures)
    for (name, case), failed, recovered in zip(CASES.items(), batch.runs[::2], batch.runs[1::2], strict=False):
        message = "no error" if failed.error is None else explained(failed.error, memory, CONFIG)
        print(f"{name}: {message}")
        if failed.error != faults[name]:
            wrong.append(f"{name}: {message}, not {explained(faults[name], memory, CONFIG)}")
        expected = 77 if case.options.get("case") == images.CATCH else 0x4000_0000 | case.cause
        if failed.exit_code != expected:
            wrong.append(f"{name}: the exit code is {failed.exit_code:#x}, not {expected:#x}")
        parts = (isa.queue_name(case.queue, CONFIG), isa.cause_name(case.cause), case.text)
        wrong += [f"{name}: the message lacks {part!r}: {message}" for part in parts if part not in message]
        if (recovered.error, recovered.exit_code, len(recovered.events)) != (None, 0, 11):
            wrong.append(f"{name}: the next image must run, but: {recovered.error}, {recovered.exit_code}")
    assert not wrong, "\n".join(wrong)
    assert set(batch.mismatches.values()) == {0} and min(batch.compared.values()) > 0


def test_images_with_a_wrong_header_are_not_booted():
    run = [work.finished() for work in works(2 * len(HEADERS))]
    for number, (word, value) in enumerate(HEADERS.items()):
        data = bytearray(run[2 * number].data)
        data[4 * word : 4 * word + 4] = value.to_bytes(4, "little")
        run[2 * number] = replace(run[2 * number], data=bytes(data))
    batch = run_batch(DEVICE, run, behaviour=BEHAVIOUR, limit=LIMIT, dump=False)
    assert not batch.failures, "\n".join(batch.failures)
    details = [0 if word == 2 else word for word in HEADERS]
    for failed, recovered, detail in zip(batch.runs[::2], batch.runs[1::2], details, strict=True):
        assert failed.error == CoreFault(0, Cause.BOOT, 0, detail)
        assert failed.exit_code is None and not failed.events
        message = explained(failed.error, batch.hbm, CONFIG)
        assert message == f"BOOT (word {detail} of the image's header is wrong, or it cannot be read)"
        assert (recovered.error, recovered.exit_code) == (None, 0)


def test_traps_of_the_controller_are_golden_s():
    """Each access that must trap prints its cause and address."""
    batch = run_batch(DEVICE, [images.hand_image(CONFIG, 0, [], case=images.TRAPS)], dump=False)
    assert not batch.failures, "\n".join(batch.failures)
    assert batch.runs[0].exit_code == 0
    assert batch.runs[0].console.count("\n") == 31


def test_the_host_interrupts():
    image = images.hand_image(CONFIG, 0, [], case=images.HOST)
    work = CoreWork(memories=image.memory()[None], host=6000, limit=LIMIT)
    (run,) = run_device(DEVICE, work).parts.values()
    assert (run.exit_code, run.console, run.error) == (0, "host", None)
    assert run.cycles > 6000
    assert run.counters["controller"]["waiting"] > 1000


def test_a_memory_that_does_not_answer_is_reported():
    """The watchdog's limit is below the latency of HBM, so that it gives up; with a higher one the image runs."""
    queues = [(DMA1, [record(images.word_copy(0, 4))])]
    run = [images.hand_image(CONFIG, images.SLOT * n, queues, limit=limit) for n, limit in enumerate((1000, 20_000))]
    boots = [image.base for image in run]
    work = CoreWork(memories=put_together(run)[None], boots=boots, behaviour=Hbm(latency=4000), limit=100_000)
    outcome = run_device(DEVICE, work)
    stuck, right = outcome.parts.values()
    assert stuck.error == CoreFault(DMA1, Cause.STUCK, run[0].blocks[0].address, 0)
    assert stuck.exit_code == 0x4000_0000 | Cause.STUCK
    message = explained(stuck.error, outcome.memories["hbm"][0], CONFIG)
    assert message.startswith("dma1, record") and "dma_copy" in message and message.endswith("STUCK")
    assert (right.error, right.exit_code) == (None, 0)
