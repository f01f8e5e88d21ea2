"""Memory images of the harnesses: one hexadecimal word over all partitions per address."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.sim.simulation import SimulationFailed

__all__ = ["memory_lines", "read_words", "write_lines"]


def memory_lines(memory: np.ndarray, width: int) -> str:
    """Return memory, uint8 [partitions, bytes], as one hexadecimal word per address, `width` bytes per partition.

    Partition 0 is in the lowest bits. The last word is padded with zeros.
    """
    partitions, size = memory.shape
    padded = np.zeros((partitions, -(-size // width) * width), np.uint8)
    padded[:, :size] = memory
    # Partition 0 and its first byte are least significant, so the reversed bytes are in printing order.
    words = padded.reshape(partitions, -1, width).transpose(1, 0, 2).reshape(-1, partitions * width)[:, ::-1]
    return "".join(word.tobytes().hex() + "\n" for word in words)


def write_lines(directory: Path, files: Mapping[str, str]) -> list[str]:
    """Write text files; return plusargs with the path and the number of lines of each file."""
    plusargs = []
    for name, text in files.items():
        path = directory / f"{name}.hex"
        path.write_text(text)
        plusargs += [f"+{name}={path}", f"+{name}_count={text.count(chr(10))}"]
    return plusargs


def read_words(path: Path, partitions: int, what: str) -> np.ndarray:
    """Return 32-bit words from a harness's file, uint32 [words, partitions]; unknown bits are a SimulationFailed."""
    text = path.read_bytes().decode()
    if set(text) - set("0123456789abcdef\n"):
        raise SimulationFailed(f"the engine delivered {what} with unknown bits")
    words = np.frombuffer(bytes.fromhex(text), ">u4").reshape(-1, partitions)
    return words[:, ::-1].astype(np.uint32)
