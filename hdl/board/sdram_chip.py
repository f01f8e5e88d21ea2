"""SDRAM chips: single data rate; parameters have the names of JEDEC's data sheets (tRCD, tRP, ...)."""

import math
from dataclasses import dataclass

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["MT48LC16M16", "SdramChip", "SdramCommand", "SdramPins"]


@dataclass(frozen=True, kw_only=True)
class SdramChip:
    """SDRAM chip.

    Arguments:
        bank_bits, row_bits, column_bits: widths of the parts of an address.
        width: bits of a word.
        cas_latency: cycles from READ to its word; value for the mode register.
        start_ns: power-up to the first command.
        trcd_ns: ACTIVATE to READ or WRITE.
        trp_ns: PRECHARGE to ACTIVATE.
        tras_ns: ACTIVATE to PRECHARGE.
        trc_ns: ACTIVATE to ACTIVATE of the same bank.
        trfc_ns: REFRESH to any command.
        twr_ns: WRITE to PRECHARGE.
        tmrd: LOAD MODE REGISTER to any command, in cycles.
        refresh_ns: time in which every row must be refreshed once.
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
        """Width of a word's index."""
        return self.bank_bits + self.row_bits + self.column_bits

    @property
    def bytes(self) -> int:
        return (self.width // 8) << self.word_bits

    def cycles(self, duration_ns: int, clock_hz: int) -> int:
        """Return the smallest number of cycles, at least one, that lasts `duration_ns`."""
        return max(1, math.ceil(duration_ns * clock_hz / 1e9))

    def refresh_cycles(self, clock_hz: int) -> int:
        """Return the number of cycles between refreshes, one row per refresh."""
        return int(self.refresh_ns * clock_hz / 1e9) >> self.row_bits


MT48LC16M16 = SdramChip()
"""SDRAM of 32 MiB with 16-bit words, as on ULX3S boards. Times are the slowest of Micron's MT48LC16M16A2-75, ISSI's
IS42S16160 and Winbond's W9825G6KH, at a CAS latency of 2.
"""


class SdramCommand:
    """Commands as (ras, cas, we), in bits 2 to 0; active high, as the pads invert them."""

    NOP = 0b000
    ACTIVATE = 0b100
    READ = 0b010
    WRITE = 0b011
    PRECHARGE = 0b101
    REFRESH = 0b110
    LOAD_MODE = 0b111


class SdramPins(wiring.Signature):
    """SDRAM pins, seen from the controller; all outputs are registers, and `i` is sampled by a register.

    Arguments:
        chip: the chip.

    Members:
        enable: the chip's clock enable.
        command: a value of `SdramCommand`.
        bank, address: operands of the command; address bit 10 selects all banks of a PRECHARGE.
        mask: one bit per byte that is not written.
        o, drive: a word, and its output enable.
        i: level of the data lines.
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
