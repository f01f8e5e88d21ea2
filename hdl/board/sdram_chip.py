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
        cas_latency: cycles from READ to the read word; also written to the mode register.
        start_ns: delay from power-up to the first command.
        trcd_ns: shortest time from ACTIVATE to READ or WRITE.
        trp_ns: shortest time from PRECHARGE to ACTIVATE.
        tras_ns: shortest time from ACTIVATE to PRECHARGE.
        trc_ns: shortest time from ACTIVATE to ACTIVATE of the same bank.
        trfc_ns: shortest time from REFRESH to any command.
        twr_ns: shortest time from WRITE to PRECHARGE.
        tmrd: fewest cycles from LOAD MODE REGISTER to any command.
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
        """Width of the index of a word."""
        return self.bank_bits + self.row_bits + self.column_bits

    @property
    def bytes(self) -> int:
        return (self.width // 8) << self.word_bits

    def cycles(self, duration_ns: int, clock_hz: int) -> int:
        """Return the smallest number of cycles, at least one, that lasts `duration_ns`."""
        return max(1, math.ceil(duration_ns * clock_hz / 1e9))

    def refresh_cycles(self, clock_hz: int) -> int:
        """Return the number of clock cycles between two refresh commands; each refreshes one row."""
        return int(self.refresh_ns * clock_hz / 1e9) >> self.row_bits


MT48LC16M16 = SdramChip()
"""SDRAM of 32 MiB with 16-bit words, as on ULX3S boards. Times are the slowest of Micron's MT48LC16M16A2-75, ISSI's
IS42S16160 and Winbond's W9825G6KH, at a CAS latency of 2.
"""


class SdramCommand:
    """Commands of the chip: bits 2 to 0 are (ras, cas, we), active high because the pads invert them."""

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
