"""Record, the unit of programs in HBM: a header, then the engine's instruction.

A queue executes its records in order: it waits for up to two semaphores, issues the instruction to its engine, and
makes up to two updates when the instruction has finished.
"""

import enum
from dataclasses import dataclass, replace

from neuroncore_rtl.spec.config import SEMAPHORE_COUNT, Config
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack, width_of
from neuroncore_rtl.spec.isa.instruction import Instruction
from neuroncore_rtl.spec.isa.registry import INSTRUCTIONS, decode_instruction

__all__ = [
    "BODY_BITS", "HEADER_BITS", "HEADER_FIELDS", "RECORD_BITS", "RECORD_BYTES", "SEMAPHORE_MAX", "Record", "Update",
    "UpdateOp", "Wait",
]  # fmt: skip

RECORD_BYTES = 128
"""Bytes of a record, and alignment of its address."""

RECORD_BITS = 8 * RECORD_BYTES

SEMAPHORE_MAX = (1 << 16) - 1


class UpdateOp(enum.IntEnum):
    """Operation of an `Update` on the value of a semaphore."""

    NONE = 0
    """No update."""
    SET = 1
    """Set the semaphore to the value."""
    ADD = 2
    """Add the value."""
    SUBTRACT = 3
    """Subtract the value."""


HEADER_FIELDS: Layout = (
    ("engine", 3),
    *(field for n in (0, 1) for field in ((f"wait{n}", 1), (f"wait{n}_semaphore", 8), (f"wait{n}_value", 16))),
    *(field for n in (0, 1) for field in ((f"update{n}", 2), (f"update{n}_semaphore", 8), (f"update{n}_value", 16))),
    ("reserved", 23),
)
"""Fields from the least significant bit up. wait: 1 to wait until the semaphore is at least the value. update: an
`UpdateOp`.
"""

HEADER_BITS = width_of(HEADER_FIELDS)

BODY_BITS = RECORD_BITS - HEADER_BITS
"""Width of the body; its bits above the instruction are ignored."""

assert HEADER_BITS == 128 and max(width_of(kind.layout) for kind in INSTRUCTIONS.values()) <= BODY_BITS


@dataclass(frozen=True)
class Wait:
    """Condition for the start of a record: the semaphore must be at least `value`."""

    semaphore: int
    value: int


@dataclass(frozen=True)
class Update:
    """Change of a semaphore by `op` and `value`, made when the instruction has completed."""

    semaphore: int
    value: int = 1
    op: UpdateOp = UpdateOp.ADD


@dataclass(frozen=True, kw_only=True)
class Record:
    """Instruction with up to two waits and updates.

    The updates are made in order when all reads and writes of the instruction are done.
    """

    instruction: Instruction
    waits: tuple[Wait, ...] = ()
    updates: tuple[Update, ...] = ()

    @property
    def engine(self) -> Engine:
        """Executing engine."""
        return self.instruction.engine

    def shortened(self) -> "Record":
        """Return the record without redundant dimensions in its instruction."""
        return replace(self, instruction=self.instruction.shortened())

    def encode(self, config: Config) -> bytes:
        """Return the record's bytes, little-endian."""
        body = self.instruction.encode(config)
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
        """Return the record; raise ValueError if a field holds an unknown code."""
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


assert SEMAPHORE_COUNT == 1 << 8
