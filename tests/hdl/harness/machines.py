"""What the harnesses of engines share: how they are built, and memories and instructions as hexadecimal files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.harness.subject_ports import hbm_sources
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.layouts import define_lines

__all__ = ["hex_lines", "hex_words", "machine_design", "read_lines", "write_files"]

_OFF = ("WIDTHEXPAND", "WIDTHTRUNC", "BLKSEQ")
"""Warnings: harnesses are written for brevity, their widths are Verilog's."""


def machine_design(
    harness: Path, defines: Mapping[str, object], engine: str, ports: Sequence[str], **options
) -> simulation.Design:
    """Return the design of a harness, whose module is `machine`, around an engine, with HBM and what it pauses by.

    Arguments:
        harness: its file. defines: macros of it, those of HBM among them.
        engine: Verilog of the engine. ports: of the harness, to be read at the end.
        options: of the design.
    """
    off, on = ("".join(f"/* verilator lint_{state} {rule} */\n" for rule in _OFF) for state in ("off", "on"))
    pauses, *hbm = (path.read_text() for path in (Path(__file__).with_name("pauses.v"), *hbm_sources(True)))
    text = "\n".join([define_lines(defines), off, pauses, harness.read_text(), on, *hbm, engine])
    return simulation.Design("machine", text, public=("done", *ports), clock="clk", **options)


def hex_words(words: Sequence[int], bits: int) -> str:
    """Return words of so many bits, one a line."""
    digits = -(-bits // 4)
    return "".join(f"{word:0{digits}x}\n" for word in words)


def hex_lines(memory: np.ndarray, size: int) -> str:
    """Return a memory, uint8 [rows, bytes], a row after the other, in beats of `size` bytes, one a line."""
    return "".join(line.tobytes().hex() + "\n" for line in memory.reshape(-1, size)[:, ::-1])


def read_lines(path: Path, rows: int, size: int) -> np.ndarray:
    """Return the memory of a file of beats of `size` bytes as a simulator wrote it, uint8 [rows, bytes]."""
    text = "".join(line for line in path.read_text().splitlines() if not line.startswith(("//", "@")))
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, size)[:, ::-1].reshape(rows, -1)


def write_files(directory: Path, files: Mapping[str, str]) -> list[str]:
    """Write texts into a directory; return the plusargs that name their files."""
    for name, text in files.items():
        (directory / f"{name}.hex").write_text(text)
    return [f"+{name}={(directory / f'{name}.hex').resolve()}" for name in files]
