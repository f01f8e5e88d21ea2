"""Random programs of all engines of a core; copies at start and end make a comparison of HBM suffice."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neuroncore_rtl.golden.core.engines import Engines
from neuroncore_rtl.kernels.program import HbmTensor, Image, Program, Tensor, build_image, dma_copy
from neuroncore_rtl.kernels.program.entries import Entry, records_of
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import FORMATS, FP32, INT8, INT32, Format
from neuroncore_rtl.spec.isa.access import storage_partitions
from neuroncore_rtl.spec.isa.fields import pack, unpack, width_of
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, Writer, garbled
from neuroncore_rtl.tb.stimulus.tensor_programs import CLOSE, TURNS, random_columns, random_rows

__all__ = [
    "CoreChoices", "CoreProgram", "CoreWriter", "NopProgram", "execute_in_order", "garbled_image",
    "random_core_program",
]  # fmt: skip

INDICES = 16  # words of row numbers in each partition
TABLE_ROWS = 8  # number of rows that those numbers select from
SKIPPED = 4  # number of last words with arbitrary numbers, for copies that skip out-of-range rows
SCRATCH = 4  # semaphores for which no record waits


@dataclass
class NopProgram(Program):
    """A program of one section with NOPs before a share of its records.

    The waits of such a record move to a NOP before the record in its queue, or to NOPs in any queues. In the second
    case the NOPs increment a separate semaphore, and the record waits for it. The program uses the first half of the
    semaphores, the NOPs use the second half.
    """

    share: float = 0.2
    seed: int = 0

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry, _ in self._mixed()]

    def records(self) -> list[isa.Record]:
        return [record for _, record in self._mixed()]

    def _mixed(self) -> Iterator[tuple[Entry, isa.Record]]:
        rng = np.random.default_rng(self.seed)
        half = len(self.semaphores) // 2
        scratch, joins = self.semaphores[half : half + SCRATCH], iter(self.semaphores[half + SCRATCH :])
        entries = super().entries
        for entry, record in zip(entries, records_of(entries, self.semaphores[:half]), strict=True):
            if rng.random() >= self.share:
                yield entry, record
                continue
            semaphore = next(joins, None) if rng.random() < 0.7 else None
            if semaphore is None:
                nops, waits = [(entry.queue, record.waits, ())], ()
            else:
                parts = (record.waits,) if rng.random() < 0.5 else (record.waits[:1], record.waits[1:])
                queues = isa.queue_count(self.config)
                nops = [(int(rng.integers(queues)), part, (isa.Update(semaphore),)) for part in parts]
                waits = (isa.Wait(semaphore, len(parts)),)
            for queue, own, updates in nops:
                if rng.random() < 0.5:
                    op = isa.UpdateOp.SET if rng.random() < 0.5 else isa.UpdateOp.ADD
                    unread = isa.Update(scratch[int(rng.integers(SCRATCH))], int(rng.integers(16)), op)
                    updates = (unread, *updates) if rng.random() < 0.5 else (*updates, unread)
                nop = isa.Record(instruction=isa.Nop(), waits=own, updates=updates)
                yield replace(entry, queue=queue, lane=None, number=0, instruction=nop.instruction, waits=[]), nop
            yield entry, replace(record, waits=waits)


@dataclass(frozen=True, kw_only=True)
class CoreChoices:
    """Composition of a random program: shares of the engines' instructions, sizes, and choices for elementwise ones.

    A multiplication has at most `longest` moving columns, every second multiplication at most 8. A long multiplication
    is still adding to a bank of PSUM when other engines request that bank. `nops` is the share of records preceded by
    NOPs. The bytes in use, per partition and of HBM, are multiples of 4, on chip at least 4096, so that there is room
    for every instruction.
    """

    tensor: float = 0.3
    elementwise: float = 0.4
    copies: float = 0.3
    longest: int = 32
    nops: float = 0.2
    sbuf_bytes: int = 4096
    psum_bytes: int = 4096
    hbm_bytes: int = 4096
    elementwise_choices: Choices = Choices()


@dataclass(frozen=True)
class CoreProgram:
    """A program, its initial tensors in HBM, and its results; `sbuf` and `psum` are the final on-chip memories."""

    program: Program
    contents: list[tuple[HbmTensor, np.ndarray]]
    results: dict[str, HbmTensor]

    def image(self) -> Image:
        return build_image(self.program, self.contents)


def random_core_program(
    rng: np.random.Generator,
    config: Config,
    count: int,
    choices: CoreChoices | None = None,
    base: int = 0,
    order: str = Program.order,
) -> CoreProgram:
    """Return a program of `count` instructions and copies in half of SBUF; `base`: HBM address, a multiple of 128."""
    writer = CoreWriter(rng, config, choices or CoreChoices(), base, order)
    for _ in range(count):
        writer.add()
    return writer.finish()


def execute_in_order(image: Image, program: Program) -> Engines:
    """Return golden's engines and memories after sequential execution of the program's instructions."""
    engines = Engines(program.config, image.memory())
    for number, entry in enumerate(program.entries):
        fault = engines.execute(entry.instruction.engine, entry.instruction.encode(program.config))
        if fault is not None:
            raise ValueError(f"instruction {number} must be legal, not of cause {fault[0]}: {entry.instruction!r}")
    return engines


class CoreWriter:
    """A random program under construction, for one core of an instance; random copies use `hbm`."""

    def __init__(
        self, rng: np.random.Generator, config: Config, choices: CoreChoices, base: int, order: str, core: int = 0
    ):
        sizes = {"sbuf_bytes": config.sbuf_bytes // 2, "psum_bytes": config.psum_bytes}
        choices = replace(choices, **{name: min(most, getattr(choices, name)) for name, most in sizes.items()})
        self.rng, self.config, self.choices = rng, config, choices
        made = {"order": order, "share": choices.nops, "seed": int(rng.integers(1 << 32)), "core": core}
        self.program = NopProgram(config, base, **made)
        space = self.program.space
        self.memories = {
            isa.Storage.SBUF: rng.integers(0, 256, (config.partitions, choices.sbuf_bytes), np.uint8),
            isa.Storage.PSUM: rng.integers(0, 256, (config.columns, choices.psum_bytes), np.uint8),
        }
        self.chip = {
            isa.Storage.SBUF: space.sbuf("sbuf", INT8, (choices.sbuf_bytes,), kept=True),
            isa.Storage.PSUM: space.psum("psum", INT8, (choices.psum_bytes,), kept=True),
        }
        self.starts = {storage: space.hbm(f"start of {t.name}", INT8, _whole(t)) for storage, t in self.chip.items()}
        self.indices = space.sbuf("indices", INT32, (INDICES,), kept=True)
        self.rows = space.hbm("rows", INT32, _whole(self.indices))
        self.hbm = space.hbm("hbm", INT8, (choices.hbm_bytes,))
        self.program.append(dma_copy(self.indices, self.rows))
        for storage, tensor in self.chip.items():
            # In halves, so that several DMA engines work.
            for part in (np.s_[: tensor.size // 2], np.s_[tensor.size // 2 :]):
                self.program.append(dma_copy(tensor[:, part], self.starts[storage][:, part]))
        own = choices.elementwise_choices
        self.elementwise = Writer(rng, config, own, self.memories, self.program.append)
        self.loaded: isa.LoadStationary | None = None
        self.turns: list[bool | None] = []  # True: load, False: multiply, None: any

    def add(self) -> None:
        c = self.choices
        kind = self.rng.random() * (c.tensor + c.elementwise + c.copies)
        if not self.turns and kind < c.tensor:
            self.turns = list(TURNS[self.rng.integers(len(TURNS))]) if self.rng.random() < CLOSE else [None]
        if self.turns:
            self._add_tensor(self.turns.pop(0))
        elif kind < c.tensor + c.elementwise:
            self.elementwise.add()
        else:
            self._add_copy()

    def finish(self) -> CoreProgram:
        results = {"hbm": self.hbm}
        for tensor in self.chip.values():
            results[tensor.name] = self.program.space.hbm(f"end of {tensor.name}", INT8, _whole(tensor))
            self.program.append(dma_copy(results[tensor.name], tensor))
        rng, shape = self.rng, self.rows.shape
        contents = [(self.starts[storage], memory) for storage, memory in self.memories.items()]
        numbers = rng.integers(0, TABLE_ROWS, shape)
        numbers[..., -SKIPPED:] = rng.integers(-TABLE_ROWS, 2 * TABLE_ROWS, (*shape[:-1], SKIPPED))
        contents.append((self.rows, numbers))
        contents.append((self.hbm, stimulus.ordinary_codes(rng, FP32, self.hbm.size // 4).view(np.uint8)))
        return CoreProgram(self.program, contents, results)

    def _add_tensor(self, loads: bool | None) -> None:
        rng, config = self.rng, self.config
        fmt = config.matmul_formats[rng.integers(len(config.matmul_formats))]
        common = {"format": fmt, "half": int(rng.integers(2)) * (fmt is FP32), **random_rows(rng, config)}
        if loads is None:
            loads = rng.random() < 0.4
        if self.loaded is None or loads:
            common |= random_columns(rng, config)
            address = self._sbuf_address(fmt, -(-common["m"] // LOAD_COLUMNS) * LOAD_COLUMNS, 1, LOAD_COLUMNS)
            instruction = self.loaded = isa.LoadStationary(**common, address=address)
        else:
            if fmt is INT8 and self.loaded.format is not INT8:
                common["format"] = fmt = self.loaded.format
            n = int(rng.integers(1, rng.choice([8, self.choices.longest])))
            step = int(rng.choice([1, 1, 1, 0, 2, 3]))
            words = self.choices.psum_bytes // 4
            most = self.config.psum_words
            # The whole operand must lie in SBUF.
            n = max(1, min(n, most, (self.choices.sbuf_bytes * 8 // fmt.bits - 1) // max(step, 1)))
            bank = int(rng.integers(-(-words // most))) * most
            psum = bank + int(rng.integers(min(most, words - bank) - n + 1))
            loaded = range(self.loaded.column, self.loaded.column + self.loaded.m)
            instruction = isa.MultiplyMoving(
                **common,
                **random_columns(rng, config, loaded),
                n=n,
                address=self._sbuf_address(fmt, n, step, 1),
                stride=step * fmt.bits // 8,
                psum=psum,
                accumulate=bool(rng.integers(2)),
                transpose=bool(rng.random() < 0.2),
            )
        self.program.append(instruction)
        self.elementwise.places.note(instruction)

    def _sbuf_address(self, fmt: Format, count: int, step: int, alignment: int) -> int:
        size = fmt.bits // 8
        units = (self.choices.sbuf_bytes // size - (count - 1) * step - 1) // alignment
        address = int(self.rng.integers(units + 1)) * alignment * size
        self.elementwise.places.fill(isa.Access(format=fmt, address=address, steps=(step,)), (count,))
        return address

    def _add_copy(self) -> None:
        """Add a copy, drawn again while its destination overlaps its source."""
        queue = int(self.rng.choice(self.program.dma_queues))
        while True:
            copy = self._copy()
            try:
                self.program.append(copy, queue)
            except ValueError as refusal:
                if "must be apart" not in str(refusal):
                    raise
            else:
                self.elementwise.places.note(copy)
                return

    def _copy(self) -> isa.DmaCopy:
        rng, config = self.rng, self.config
        shape = [1] * int(rng.integers(1, isa.DMA_DIMENSIONS + 1))
        most = int(rng.choice([4, 24, 100]))
        for d in rng.permutation(len(shape)):
            shape[d] = int(rng.integers(1, most // prod(shape) + 1))
        formats = list(FORMATS.values())
        of = formats[rng.integers(len(formats))]
        to = of if rng.random() < 0.6 else formats[rng.integers(len(formats))]
        storages = [isa.Storage(int(code)) for code in rng.choice(len(isa.Storage), 2, p=(0.4, 0.2, 0.4))]
        index = None
        if rng.random() < 0.25 and shape[0] <= config.partitions and isa.Storage.HBM in storages:
            place = int(rng.integers(INDICES))
            address, skip = self.indices.address + 4 * place, place >= INDICES - SKIPPED
            first = int(rng.integers(config.partitions - shape[0] + 1))
            index = isa.DmaIndex(address=address, partition=first, limit=TABLE_ROWS, skip=skip)
        gather = index if storages[0] == isa.Storage.HBM else None
        scatter = index if gather is None else None
        src = self._tensor(shape, of, storages[0], gather, source=True)
        dst = self._tensor(shape, to, storages[1], scatter, source=False)
        return isa.DmaCopy(shape=tuple(shape), src=src, dst=dst, gather=gather, scatter=scatter)

    def _tensor(
        self, shape: list[int], fmt: Format, storage: isa.Storage, index: isa.DmaIndex | None, *, source: bool
    ) -> isa.DmaTensor:
        rng = self.rng
        size = fmt.bits // 8
        hbm = storage == isa.Storage.HBM
        room = self.choices.hbm_bytes if hbm else self.memories[storage].shape[1]
        partitions = 1 if hbm else storage_partitions(storage, self.config)
        axes = [d for d, count in enumerate(shape) if count <= partitions]
        axis = None if hbm or not axes or rng.random() < 0.2 else int(rng.choice(axes))
        counts = [TABLE_ROWS if index and d == 0 else count for d, count in enumerate(shape)]
        free = tuple(1 if d == axis else count for d, count in enumerate(counts))
        while True:
            steps = [int(step) for step in self.elementwise.places.steps(free, source=source)]
            spans = [(count - 1) * step for count, step in zip(free, steps, strict=True)]
            low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
            if (high - low + 1) * size <= room:
                break
        address = size * int(rng.integers(-low, room // size - high))
        partition = int(rng.integers(partitions))
        if axis is not None:
            most = (partitions - 1) // max(shape[axis] - 1, 1)
            steps[axis] = int(rng.integers(0 if source else 1, min(most, 3) + 1)) if most else 0
            if rng.random() < 0.7:
                steps[axis] = min(most, 1)
            reach = (shape[axis] - 1) * steps[axis]
            partition = int(rng.integers(partitions - reach))
            if rng.random() < 0.3:
                partition, steps[axis] = partition + reach, -steps[axis]
        place = {"address": address, "partition": partition}
        if hbm:
            place = {"address": address + self.hbm.address, "partition": 0}
        return isa.DmaTensor(format=fmt, storage=storage, **place, steps=tuple(steps), axis=axis)


def _whole(tensor: Tensor) -> tuple[int, ...]:
    return (tensor.partitions, *tensor.shape)


def garbled_image(rng: np.random.Generator, image: Image) -> Image:
    """Return an image with random unused bits of records, and `overlap` cleared in some."""
    data = bytearray(image.data)
    for block, records in zip(image.blocks, image.records, strict=True):
        for number in range(len(records)):
            place = block.address - image.base + number * isa.RECORD_BYTES
            word = int.from_bytes(data[place : place + isa.RECORD_BYTES], "little")
            data[place : place + isa.RECORD_BYTES] = _garbled_record(rng, word).to_bytes(isa.RECORD_BYTES, "little")
    return replace(image, data=bytes(data))


def _garbled_record(rng: np.random.Generator, word: int) -> int:
    header = unpack(isa.HEADER_FIELDS, word)
    engine = isa.Engine(header["engine"])
    free = {"reserved"} | {
        f"{name}_{part}"
        for name in ("wait0", "wait1", "update0", "update1")
        for part in ("semaphore", "value")
        if header[name] == isa.UpdateOp.NONE
    }
    kind = isa.INSTRUCTIONS[engine]
    values, bits = kind.unpack(word >> isa.HEADER_BITS), width_of(kind.layout)
    if "overlap" in values:
        values["overlap"] &= int(rng.random() < 0.7)
    body = kind.pack(garbled(rng, kind.layout, values, kind.unused(values), kind.signed))
    above = int.from_bytes(rng.bytes(isa.BODY_BITS // 8), "little") >> bits << bits
    return pack(isa.HEADER_FIELDS, garbled(rng, isa.HEADER_FIELDS, header, free)) | (body | above) << isa.HEADER_BITS
