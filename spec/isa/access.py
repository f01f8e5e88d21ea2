"""How an instruction names a tensor in SBUF or PSUM: start partition, address, format, a signed step a dimension."""

import enum
from dataclasses import dataclass, replace
from typing import Self

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format

__all__ = [
    "ACCESS_FIELDS",
    "DIMENSIONS",
    "POINTER_FIELDS",
    "Access",
    "Addressed",
    "Pointer",
    "Storage",
    "allowed_start",
    "drop_step",
    "storage_bytes",
    "storage_partitions",
]

DIMENSIONS = 4
"""Free dimensions of an instruction (NeuronCore-v2: up to 4, counts of 16 bits, signed element steps of 16 bits)."""


class Storage(enum.IntEnum):
    """The memories; the value is the code that instructions carry. Only the DMA engines reach HBM."""

    SBUF = 0
    """On chip: operands and results of all engines."""
    PSUM = 1
    """On chip: what the tensor engine accumulates to."""
    HBM = 2
    """Off chip, behind AXI4."""


def storage_bytes(storage: int, config: Config) -> int:
    """Return the bytes of a partition of an on-chip storage."""
    return config.psum_bytes if storage == Storage.PSUM else config.sbuf_bytes


def storage_partitions(storage: int, config: Config) -> int:
    """Return the partitions of an on-chip storage."""
    return config.columns if storage == Storage.PSUM else config.partitions


def allowed_start(start: int, count: int, quadrant: int) -> str | None:
    """Return where an access to partitions must start, in words, if not at the quadrant where it does; else None.

    Arguments:
        start: its first partition, that of a quadrant.
        count: of partitions.
        quadrant: partitions of one.
    """
    if count > 2 * quadrant and start:
        return f"0 for more than {2 * quadrant}"
    if count > quadrant and start // quadrant % 2:
        return f"0 or {2 * quadrant} for more than {quadrant}"
    return None


def drop_step(steps: tuple[int, ...], d: int) -> tuple[int, ...] | None:
    """Return steps without that of a dimension; None if that is not 0. Steps that are not there stay so."""
    return steps if not steps else None if steps[d] else steps[:d] + steps[d + 1 :]


POINTER_FIELDS: tuple[tuple[str, int], ...] = (("address", 18), ("quadrant", 2), ("dtype", 4))
"""Name and width of the fields of a :class:`Pointer`, from the least significant bit up."""

ACCESS_FIELDS: tuple[tuple[str, int], ...] = (
    *POINTER_FIELDS,
    ("storage", 1),
    *((f"step{dimension}", 16) for dimension in range(DIMENSIONS)),
)
"""Name and width of the fields of an :class:`Access`, from the least significant bit up. Dimension 0 is the innermost;
steps are two's complement, in elements."""


class Addressed:
    """What has an address: a frozen dataclass without slots."""

    def at(self, address: int) -> Self:
        """Return the same at another address."""
        moved = object.__new__(type(self))
        moved.__dict__.update(self.__dict__, address=address)
        return moved


@dataclass(frozen=True, kw_only=True)
class Pointer(Addressed):
    """One element in SBUF in each partition: a per-partition scalar.

    Arguments:
        format: of the element.
        address: its byte address in every partition.
        partition: the partition of lane 0, the start of a quadrant.
    """

    format: Format
    address: int
    partition: int = 0


@dataclass(frozen=True, kw_only=True)
class Access(Addressed):
    """The elements that an instruction reads or writes; lane i works on partition `partition` + i.

    Arguments:
        format: of an element.
        address: byte address, in every partition, of the element of index (0, ..., 0).
        partition: the partition of lane 0, the start of a quadrant.
        storage: SBUF or PSUM.
        steps: from one index of a dimension to the next, in elements, for each dimension of the instruction's shape,
            outermost first. 0 repeats the element.
    """

    format: Format
    address: int
    partition: int = 0
    storage: Storage = Storage.SBUF
    steps: tuple[int, ...] = (1,)

    def without(self, d: int) -> "Access | None":
        """Return it without a dimension; None if that has a meaning."""
        left = drop_step(self.steps, d)
        return None if left is None else replace(self, steps=left)
