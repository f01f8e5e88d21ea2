"""The rules that instructions must obey, by the codes that hardware and software report.

The rules of an engine are in its folder, each said once. They read an instruction's fields, so they judge any word of
bits. The assembler's side raises their message; the hardware, which checks the same rules before it touches a memory,
reports the same `Rule` as its cause of error.
"""

import enum
from collections.abc import Iterable

__all__ = ["Broken", "Rule", "lowest"]


class Rule(enum.IntEnum):
    """What a refused instruction breaks; the value is the hardware's cause of error. Of several the lowest is named."""

    OPCODE = 1
    """The opcode is one of the engine's."""
    FORMAT = 2
    """Every tensor and pointer that the opcode uses has a known format."""
    OPERATION = 3
    """op0, op1 and function are known, and the opcode can use them."""
    ARITHMETIC = 4
    """Integers are not divided, raised to powers or rounded, and have no remainders; FP32 has no bitwise operations and
    shifts."""
    DESTINATION = 5
    """FIND_INDEX8 writes an integer format; TRANSPOSE keeps the format."""
    ROUNDING = 6
    """Stochastic rounding is for results of FP32 arithmetic that are written element by element."""
    SHAPE = 7
    """Counts are at least 1, and as many as the opcode can take."""
    PARTITIONS = 8
    """Lanes exist in the storage, rows and columns in the array, and start at a quadrant; more than half of them start
    at 0, more than a quarter at a half."""
    PORTS = 9
    """Two sources cannot both be in PSUM, to which an engine has one read port."""
    ALIGNMENT = 10
    """Addresses are multiples of the element's size."""
    RANGE = 11
    """All elements lie inside the partition, the words of a MultiplyMoving inside a bank of PSUM."""
    STORAGE = 12
    """A DMA's storages exist, and what is gathered or scattered is in HBM."""
    STATE = 13
    """A MultiplyMoving uses no columns but those that were loaded, and INT8 with INT8 only."""


Broken = tuple[Rule, str]
"""A rule that an instruction breaks, and a message that says so with the value and the place."""


def lowest(broken: Iterable[Broken]) -> Broken | None:
    """Return the lowest of broken rules, the first one of these; None if there is none."""
    return min(broken, key=lambda found: found[0], default=None)
