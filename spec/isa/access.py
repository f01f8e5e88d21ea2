"""Tensor accesses to SBUF and PSUM."""

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
"""Free dimensions of an instruction, as in NeuronCore-v2."""


class Storage(enum.IntEnum):
    """Memories; the value is the code in instructions. Only the DMA engines access HBM."""

    SBUF = 0
    """On chip: operands and results of all engines."""
    PSUM = 1
    """On chip: accumulators of the tensor engine."""
    HBM = 2
    """Off chip, over AXI4."""


def storage_bytes(storage: int, config: Config) -> int:
    """Return the bytes per partition of an on-chip storage."""
    return config.psum_bytes if storage == Storage.PSUM else config.sbuf_bytes


def storage_partitions(storage: int, config: Config) -> int:
    """Return the number of partitions of an on-chip storage."""
    return config.columns if storage == Storage.PSUM else config.partitions


def allowed_start(start: int, count: int, quadrant: int) -> str | None:
    """Return None if `count` partitions may start at `start`, the start of a quadrant; else the allowed starts."""
    if count > 2 * quadrant and start:
        return f"0 for more than {2 * quadrant}"
    if count > quadrant and start // quadrant % 2:
        return f"0 or {2 * quadrant} for more than {quadrant}"
    return None


def drop_step(steps: tuple[int, ...], d: int) -> tuple[int, ...] | None:
    """Return `steps` without that of dimension `d`; None if it is not 0."""
    return steps if not steps else None if steps[d] else steps[:d] + steps[d + 1 :]


POINTER_FIELDS: tuple[tuple[str, int], ...] = (("address", 18), ("quadrant", 2), ("dtype", 4))
"""Fields of a `Pointer`, from the least significant bit up."""

ACCESS_FIELDS: tuple[tuple[str, int], ...] = (
    *POINTER_FIELDS,
    ("storage", 1),
    *((f"step{dimension}", 16) for dimension in range(DIMENSIONS)),
)
"""Fields of an `Access`, from the least significant bit up. Dimension 0 is the innermost; steps are in two's
complement.
"""


class Addressed:
    """Base class of operands: frozen dataclasses without slots."""

    def at(self, address: int) -> Self:
        """Return a copy of the operand with another address."""
        moved = object.__new__(type(self))
        moved.__dict__.update(self.__dict__, address=address)
        return moved


@dataclass(frozen=True, kw_only=True)
class Pointer(Addressed):
    """Scalar: one element in SBUF in each partition.

    Arguments:
        format: format of the element.
        address: byte address in every partition.
        partition: first partition; must be the start of a quadrant.
    """

    format: Format
    address: int
    partition: int = 0


@dataclass(frozen=True, kw_only=True)
class Access(Addressed):
    """Elements that an instruction reads or writes, with the same addresses in consecutive partitions.

    Arguments:
        format: format of an element.
        address: byte address, in every partition, of the element of index (0, ..., 0).
        partition: first partition; must be the start of a quadrant.
        storage: SBUF or PSUM.
        steps: distance in elements from one index to the next in each dimension, outermost first; 0 repeats an element.
    """

    format: Format
    address: int
    partition: int = 0
    storage: Storage = Storage.SBUF
    steps: tuple[int, ...] = (1,)

    def without(self, d: int) -> "Access | None":
        """Return a copy without dimension `d`; None if the step of that dimension is not 0."""
        left = drop_step(self.steps, d)
        return None if left is None else replace(self, steps=left)
