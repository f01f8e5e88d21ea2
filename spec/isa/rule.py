"""Rules of instructions, with the codes that hardware and software report.

The assembler raises their messages. The hardware checks the same rules before it accesses a memory.
"""

import enum
from collections.abc import Iterable

__all__ = ["Broken", "Rule", "lowest"]


class Rule(enum.IntEnum):
    """Rules. If several are broken, the hardware reports the lowest as the cause."""

    OPCODE = 1
    """The engine has the opcode."""
    FORMAT = 2
    """Every tensor and pointer that the opcode uses has a known format."""
    OPERATION = 3
    """op0, op1 and function are known, and the opcode allows them."""
    ARITHMETIC = 4
    """Integer arithmetic has no division, remainder, power or rounding; FP32 has no bitwise operations and shifts."""
    DESTINATION = 5
    """FIND_INDEX8 writes an integer format; TRANSPOSE keeps the format."""
    ROUNDING = 6
    """Stochastic rounding requires results of FP32 arithmetic that are written element by element."""
    SHAPE = 7
    """Counts are at least 1, and within the limits of the opcode."""
    PARTITIONS = 8
    """Partitions exist in the storage, rows and columns in the array, and start at a quadrant. An access to more than a
    quarter of the partitions starts at 0 or at the half, to more than half of them at 0.
    """
    PORTS = 9
    """Two sources are not both in PSUM, for which an engine has one read port."""
    ALIGNMENT = 10
    """Addresses are multiples of the element's size."""
    RANGE = 11
    """All elements are inside the partition; the words of a MultiplyMoving are inside one PSUM bank."""
    STORAGE = 12
    """The storages of a copy exist, and a gathered or scattered tensor is in HBM."""
    STATE = 13
    """A MultiplyMoving uses only columns that were loaded, and INT8 only with INT8. A collective's group is valid, and
    its rank is the executing core's.
    """


Broken = tuple[Rule, str]
"""Broken rule, and a message with the value and the operand."""


def lowest(broken: Iterable[Broken]) -> Broken | None:
    """Return the lowest broken rule, the first of equal ones, or None."""
    return min(broken, key=lambda found: found[0], default=None)
