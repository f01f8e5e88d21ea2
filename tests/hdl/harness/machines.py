from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.harness.subject_ports import hbm_sources
from neuroncore_rtl.run.sim import layouts, simulation

__all__ = ["hex_lines", "hex_words", "machine_design", "read_lines", "write_files"]

_OFF = ("WIDTHEXPAND", "WIDTHTRUNC", "BLKSEQ")
"""Disabled warnings: harnesses use Verilog's implicit widths."""


def machine_design(
    harness: Path, defines: Mapping[str, object], engine: str, ports: Sequence[str], **options
) -> simulation.Design:
    """Return a design: `engine`'s Verilog, HBM with its stalls, and the module `machine` of the Verilog file `harness`.

    `defines` are macros of the harness and of HBM, `ports` the ports of the harness that are read at the end.
    """
    off, on = ("".join(f"/* verilator lint_{state} {rule} */\n" for rule in _OFF) for state in ("off", "on"))
    pauses, *hbm = (path.read_text() for path in (Path(__file__).with_name("pauses.v"), *hbm_sources(True)))
    text = "\n".join([layouts.define_lines(defines), off, pauses, harness.read_text(), on, *hbm, engine])
    return simulation.Design("machine", text, public=("done", *ports), clock="clk", **options)


def hex_words(words: Sequence[int], bits: int) -> str:
    digits = -(-bits // 4)
    return "".join(f"{word:0{digits}x}\n" for word in words)


def hex_lines(memory: np.ndarray, size: int) -> str:
    """Return a memory row by row in beats of `size` bytes."""
    return "".join(line.tobytes().hex() + "\n" for line in memory.reshape(-1, size)[:, ::-1])


def read_lines(path: Path, rows: int, size: int) -> np.ndarray:
    text = "".join(line for line in path.read_text().splitlines() if not line.startswith(("//", "@")))
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, size)[:, ::-1].reshape(rows, -1)


def write_files(directory: Path, files: Mapping[str, str]) -> list[str]:
    """Return the plusargs with the names of the files."""
    for name, text in files.items():
        (directory / f"{name}.hex").write_text(text)
    return [f"+{name}={(directory / f'{name}.hex').resolve()}" for name in files]
