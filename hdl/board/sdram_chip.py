"""SDRAM chips: single data rate, by the names of JEDEC's data sheets (tRCD, tRP, ...)."""

import math
from dataclasses import dataclass

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["MT48LC16M16", "SdramChip", "SdramCommand", "SdramPins"]


@dataclass(frozen=True, kw_only=True)
class SdramChip:
    """A chip.

    Arguments:
        bank_bits, row_bits, column_bits: of an address.
        width: bits of a word.
        cas_latency: cycles from READ to its word; what the mode register is set to.
        start_ns: from power to the first command.
        trcd_ns: ACTIVATE to READ or WRITE. trp_ns: PRECHARGE to ACTIVATE. tras_ns: ACTIVATE to PRECHARGE. trc_ns:
            ACTIVATE to ACTIVATE of a bank. trfc_ns: REFRESH to anything. twr_ns: WRITE to PRECHARGE.
        tmrd: LOAD MODE REGISTER to anything, in cycles.
        refresh_ns: in which every row must have been refreshed.
    """

    bank_bits: int = 2
    row_bits: int = 13
    column_bits: int = 9
    width: int = 16
    cas_latency: int = 2
    start_ns: int = 200_000
    trcd_ns: int = 20
    trp_ns: int = 20
    tras_ns: int = 44
    trc_ns: int = 66
    trfc_ns: int = 66
    twr_ns: int = 15
    tmrd: int = 2
    refresh_ns: int = 64_000_000

    @property
    def word_bits(self) -> int:
        """Bits of the number of a word."""
        return self.bank_bits + self.row_bits + self.column_bits

    @property
    def bytes(self) -> int:
        return (self.width // 8) << self.word_bits

    def cycles(self, duration_ns: int, clock_hz: int) -> int:
        """Return the cycles in which so many nanoseconds have passed, at least one."""
        return max(1, math.ceil(duration_ns * clock_hz / 1e9))

    def refresh_cycles(self, clock_hz: int) -> int:
        """Return the cycles in which a row must be refreshed, so that all of them are in time."""
        return int(self.refresh_ns * clock_hz / 1e9) >> self.row_bits


MT48LC16M16 = SdramChip()
"""32 MiB of 16 bits, as boards of the ULX3S carry it; times are the slowest of Micron's MT48LC16M16A2-75, ISSI's
IS42S16160 and Winbond's W9825G6KH, at a CAS latency of 2."""


class SdramCommand:
    """Levels of (ras, cas, we), as bits 2 to 0; high is active, as they are inverted at the pads."""

    NOP = 0b000
    ACTIVATE = 0b100
    READ = 0b010
    WRITE = 0b011
    PRECHARGE = 0b101
    REFRESH = 0b110
    LOAD_MODE = 0b111


class SdramPins(wiring.Signature):
    """Seen from the controller. Everything that it drives comes from a register, and `i` is sampled into one.

    Arguments:
        chip: the chip.

    Members:
        enable: the chip's clock enable. command: a level of `SdramCommand`. bank, address, mask: of the command;
            address bit 10 means all banks to PRECHARGE; mask has a bit for each byte that is not to be written.
        o, drive: a word, and whether it is driven. i: what is on the data lines.
    """

    def __init__(self, chip: SdramChip):
        super().__init__(
            {
                "enable": Out(1),
                "command": Out(3),
                "bank": Out(chip.bank_bits),
                "address": Out(chip.row_bits),
                "mask": Out(chip.width // 8),
                "o": Out(chip.width),
                "drive": Out(1),
                "i": In(chip.width),
            }
        )
