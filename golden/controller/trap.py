"""Traps: exceptions and interrupts of RISC-V."""

import enum

__all__ = ["INTERRUPT", "Cause", "Trap"]

INTERRUPT = 1 << 31
"""Bit of mcause that is set for interrupts."""


class Cause(enum.IntEnum):
    """Causes of traps: the values of the register mcause."""

    FETCH_MISALIGNED = 0
    FETCH_FAULT = 1
    ILLEGAL = 2
    BREAKPOINT = 3
    LOAD_MISALIGNED = 4
    LOAD_FAULT = 5
    STORE_MISALIGNED = 6
    STORE_FAULT = 7
    ENVIRONMENT_CALL = 11
    TIMER = INTERRUPT | 7
    EXTERNAL = INTERRUPT | 11


class Trap(Exception):
    """A RISC-V exception, with the values that its handler finds in the registers mcause and mtval."""

    def __init__(self, cause: Cause, value: int):
        super().__init__(cause, value)
        self.cause = cause
        self.value = value
