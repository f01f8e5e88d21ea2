"""Memory images of the harnesses: one word over all partitions per address."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.sim.simulation import SimulationFailed

__all__ = ["memory_words", "read_words", "write_lines"]


def memory_words(memory: np.ndarray, width: int) -> np.ndarray:
    """Return memory, uint8 [partitions, bytes], as a word per address, uint8 [addresses, partitions * width].

    A word has `width` bytes of each partition, most significant byte first: partition 0 is in the lowest bits. The last
    word is padded with zeros.
    """
    partitions, size = memory.shape
    padded = np.zeros((partitions, -(-size // width) * width), np.uint8)
    padded[:, :size] = memory
    return padded.reshape(partitions, -1, width).transpose(1, 0, 2).reshape(-1, partitions * width)[:, ::-1]


def write_lines(directory: Path, files: Mapping[str, str | np.ndarray]) -> list[str]:
    """Write text files, and binary ones of words; return plusargs with paths and numbers of lines."""
    plusargs = []
    for name, lines in files.items():
        if isinstance(lines, str):
            path, count = directory / f"{name}.hex", lines.count("\n")
            path.write_text(lines)
        else:
            path, count = directory / f"{name}.bin", len(lines)
            path.write_bytes(lines.tobytes())
        plusargs += [f"+{name}={path}", f"+{name}_count={count}"]
    return plusargs


def read_words(path: Path, partitions: int, what: str) -> np.ndarray:
    """Return 32-bit words from a harness's file, uint32 [words, partitions]; unknown bits are a SimulationFailed."""
    text = path.read_bytes().decode()
    if set(text) - set("0123456789abcdef\n"):
        raise SimulationFailed(f"the engine delivered {what} with unknown bits")
    words = np.frombuffer(bytes.fromhex(text), ">u4").reshape(-1, partitions)
    return words[:, ::-1].astype(np.uint32)
