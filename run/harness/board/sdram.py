"""Model of an SDRAM chip (`run/harness/board/sdram.v`), and its parameters."""

from dataclasses import fields
from pathlib import Path

from neuroncore_rtl.hdl.board.sdram_chip import SdramChip

__all__ = ["SDRAM", "sdram_parameters"]

SDRAM = Path(__file__).with_suffix(".v")

TRRD_NS = 15
"""Least time from ACTIVATE of a bank to ACTIVATE of another bank."""


def sdram_parameters(chip: SdramChip, clock_hz: int, start_ns: int | None = None) -> str:
    """Return the parameters of an instance of the Verilog model of an SDRAM chip.

    `start_ns` is the time from power-up to the first command, by default the time that the chip needs.
    """
    times = {field.name.removesuffix("_ns"): getattr(chip, field.name) for field in fields(chip) if "_ns" in field.name}
    times |= {"trrd": TRRD_NS, "trefi": chip.refresh_ns / (1 << chip.row_bits)} | {"start": start_ns or chip.start_ns}
    del times["refresh"]
    values = {name.upper(): round(1000 * time) for name, time in times.items()}
    values |= {"PERIOD": round(1e12 / clock_hz), "TMRD": chip.tmrd, "CAS_LATENCY": chip.cas_latency}
    values |= {name.upper(): getattr(chip, name) for name in ("bank_bits", "row_bits", "column_bits")}
    return ", ".join(f".{name}({value})" for name, value in values.items())
