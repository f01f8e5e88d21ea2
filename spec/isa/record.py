"""The record: what a program in HBM is made of. One size for every engine: header, then the engine's instruction.

A queue takes its records in order: it waits for up to two semaphores, gives the instruction to its engine, and when
that has finished it does up to two updates.
"""

import enum
from dataclasses import dataclass

from neuroncore_rtl.spec.config import SEMAPHORES, Config
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, COLLECTIVE_FIELDS, Collective
from neuroncore_rtl.spec.isa.dma import DMA_BITS, DMA_FIELDS, DmaCopy
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_BITS, ELEMENTWISE_FIELDS, Elementwise
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack, width_of
from neuroncore_rtl.spec.isa.legality import SCALAR_OPCODES
from neuroncore_rtl.spec.isa.tensor import TENSOR_BITS, TENSOR_FIELDS, LoadStationary, MultiplyMoving

__all__ = [
    "BODY_BITS", "BODY_FIELDS", "HEADER_BITS", "HEADER_FIELDS", "QUEUE_COUNTERS", "RECORDS_AHEAD", "RECORD_BITS",
    "RECORD_BYTES", "SEMAPHORE_MAX", "Engine", "Instruction", "Record", "Update", "UpdateOp", "Wait",
    "collective_queue", "engine_of", "engine_of_queue", "queue_count", "queue_name",
]  # fmt: skip

RECORD_BYTES = 128
"""Bytes of a record; its address is a multiple of them."""

RECORD_BITS = 8 * RECORD_BYTES

SEMAPHORE_MAX = (1 << 16) - 1
"""Largest value of a semaphore."""


class Engine(enum.IntEnum):
    """The engines; the value is the code that records carry. 0 is none: a record of zeros is an error."""

    TENSOR = 1
    VECTOR = 2
    SCALAR = 3
    DMA = 4
    COLLECTIVE = 5


class UpdateOp(enum.IntEnum):
    """What an update does to a semaphore."""

    NONE = 0
    SET = 1
    ADD = 2
    SUBTRACT = 3


HEADER_FIELDS: Layout = (
    ("engine", 3),
    *(field for n in (0, 1) for field in ((f"wait{n}", 1), (f"wait{n}_semaphore", 8), (f"wait{n}_value", 16))),
    *(field for n in (0, 1) for field in ((f"update{n}", 2), (f"update{n}_semaphore", 8), (f"update{n}_value", 16))),
    ("reserved", 23),
)
"""Name and width of the header's fields, from the least significant bit up. wait: whether to wait until the semaphore
is at least the value. update: an `UpdateOp`."""

HEADER_BITS = width_of(HEADER_FIELDS)

BODY_BITS = RECORD_BITS - HEADER_BITS
"""Bits for the instruction, which starts at the lowest; those above it are ignored."""

BODY_FIELDS: dict[Engine, Layout] = {
    Engine.TENSOR: TENSOR_FIELDS,
    Engine.VECTOR: ELEMENTWISE_FIELDS,
    Engine.SCALAR: ELEMENTWISE_FIELDS,
    Engine.DMA: DMA_FIELDS,
    Engine.COLLECTIVE: COLLECTIVE_FIELDS,
}
"""The instruction's layout for each engine."""

assert HEADER_BITS == 128 and max(TENSOR_BITS, ELEMENTWISE_BITS, DMA_BITS, COLLECTIVE_BITS) <= BODY_BITS

QUEUE_COUNTERS = ("records", "idle", "wait_fetch", "wait_semaphore", "wait_engine", "executing")
"""Counters of a queue, in this order: records retired, and cycles, of which every one counts once: the queue has
nothing to do (idle); its next record is still on its way (fetch), waits for a semaphore, or for the engine to take it;
else records are in the engine and none is left in the block (executing)."""

COUNTER_BITS = 48
"""Bits of a counter."""

QUEUES = (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR)
"""Engines of queues 0, 1, 2; the DMA engines' follow, and that of the collective engine, where there is one."""

RECORDS_AHEAD = {Engine.TENSOR: 4, Engine.VECTOR: 4, Engine.SCALAR: 4, Engine.DMA: 2, Engine.COLLECTIVE: 2}
"""Records that a queue fetches ahead, the one that waits or is issued among them; those of DMA take longer, and there
are many of them."""


def queue_count(config: Config) -> int:
    """Return the number of queues."""
    return len(QUEUES) + config.dma_engines + (config.cores > 1)


def collective_queue(config: Config) -> int | None:
    """Return the queue of the collective engine, the last one; None in a core that is alone."""
    return len(QUEUES) + config.dma_engines if config.cores > 1 else None


def engine_of_queue(queue: int, config: Config) -> Engine:
    """Return the engine of a queue."""
    if queue == collective_queue(config):
        return Engine.COLLECTIVE
    return QUEUES[queue] if queue < len(QUEUES) else Engine.DMA


def queue_name(queue: int, config: Config) -> str:
    """Return how reports name a queue: tensor, vector, scalar, dma0, dma1, ..., collective."""
    engine = engine_of_queue(queue, config)
    return f"dma{queue - len(QUEUES)}" if engine == Engine.DMA else engine.name.lower()


Instruction = LoadStationary | MultiplyMoving | Elementwise | DmaCopy | Collective
"""What a record can hold."""


def engine_of(instruction: Instruction) -> Engine:
    """Return the engine that executes an instruction."""
    if isinstance(instruction, DmaCopy):
        return Engine.DMA
    if isinstance(instruction, Collective):
        return Engine.COLLECTIVE
    if isinstance(instruction, Elementwise):
        return Engine.SCALAR if instruction.opcode in SCALAR_OPCODES else Engine.VECTOR
    return Engine.TENSOR


@dataclass(frozen=True)
class Wait:
    """Wait until a semaphore is at least a value."""

    semaphore: int
    value: int


@dataclass(frozen=True)
class Update:
    """Change a semaphore when the instruction has finished."""

    semaphore: int
    value: int = 1
    op: UpdateOp = UpdateOp.ADD


@dataclass(frozen=True, kw_only=True)
class Record:
    """An instruction with what ties it to others.

    Arguments:
        instruction: what the engine does.
        waits: up to two, all of which must hold before it starts.
        updates: up to two, in order, when all it writes is written and all it reads is read.
    """

    instruction: Instruction
    waits: tuple[Wait, ...] = ()
    updates: tuple[Update, ...] = ()

    @property
    def engine(self) -> Engine:
        """The engine that executes it."""
        return engine_of(self.instruction)

    def encode(self, config: Config) -> bytes:
        """Return the record's bytes, little-endian.

        Raises:
            ValueError: if a value does not fit its field.
        """
        instruction = self.instruction
        body = instruction.encode(config) if isinstance(instruction, Elementwise) else instruction.encode()
        return (self._header() | body << HEADER_BITS).to_bytes(RECORD_BYTES, "little")

    def _header(self) -> int:
        values = {name: 0 for name, _ in HEADER_FIELDS} | {"engine": int(self.engine)}
        for kind, items in (("wait", self.waits), ("update", self.updates)):
            if len(items) > 2:
                raise ValueError(f"{kind}s must be at most 2, not {len(items)}")
        for n, wait in enumerate(self.waits):
            values |= {f"wait{n}": 1, f"wait{n}_semaphore": wait.semaphore, f"wait{n}_value": wait.value}
        for n, update in enumerate(self.updates):
            values |= {
                f"update{n}": int(update.op),
                f"update{n}_semaphore": update.semaphore,
                f"update{n}_value": update.value,
            }
        return pack(HEADER_FIELDS, values, "record")

    @staticmethod
    def decode(data: bytes, config: Config) -> "Record":
        """Return the record of `RECORD_BYTES` bytes; its instruction is in its full form (all dimensions).

        Raises:
            ValueError: if a field holds the code of nothing.
        """
        from neuroncore_rtl.spec.isa.decode import decode_instruction

        word = int.from_bytes(data, "little")
        header = unpack(HEADER_FIELDS, word)
        body = word >> HEADER_BITS
        waits = tuple(
            Wait(header[f"wait{n}_semaphore"], header[f"wait{n}_value"]) for n in (0, 1) if header[f"wait{n}"]
        )
        updates = tuple(
            Update(header[f"update{n}_semaphore"], header[f"update{n}_value"], UpdateOp(header[f"update{n}"]))
            for n in (0, 1)
            if header[f"update{n}"]
        )
        return Record(instruction=decode_instruction(header["engine"], body, config), waits=waits, updates=updates)


assert SEMAPHORES == 1 << 8
