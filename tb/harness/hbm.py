"""How the HBM of a harness behaves (tb/harness/hbm.v), and the files that its content comes from and goes to."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["VERILOG", "Hbm", "read_memory", "write_memory"]

VERILOG = Path(__file__).with_suffix(".v")


@dataclass(frozen=True, kw_only=True)
class Hbm:
    """Behaviour of the memory; the defaults are those of a fast and patient one.

    Arguments:
        size: bytes that exist; what lies beyond is answered with DECERR. None: as many as the harness has room for.
        latency: cycles from an address, or the last beat written, to the response; at least 1.
        gap: cycles that a port rests after each burst, for reads and for writes on their own.
        port_rate, rate: bytes that a port, or all together, may read and write in 256 cycles; 0 is no limit.
        stall: every handshake pauses in so many of 256 cycles, at random.
        reorder: in so many of 256 cycles a burst or a response overtakes those of other IDs.
        interleave: whether it does so in the midst of a burst, too.
        slverr, decerr: the first byte and the one behind the last of what is answered with that error; whole beats.
        seed: of what is random.
    """

    size: int | None = None
    latency: int = 64
    gap: int = 0
    port_rate: int = 0
    rate: int = 0
    stall: int = 0
    reorder: int = 0
    interleave: bool = False
    slverr: tuple[int, int] = (0, 0)
    decerr: tuple[int, int] = (0, 0)
    seed: int = 1

    def plusargs(self) -> list[str]:
        """Return the arguments for the simulator."""
        names = ("latency", "gap", "port_rate", "rate", "stall", "reorder", "seed")
        return [
            *(f"+hbm_{name}={getattr(self, name)}" for name in names),
            *([] if self.size is None else [f"+hbm_size={self.size}"]),
            f"+hbm_interleave={int(self.interleave)}",
            *_limits("slverr", self.slverr),
            *_limits("decerr", self.decerr),
        ]


def _limits(name: str, limits: tuple[int, int]) -> Iterable[str]:
    return (f"+hbm_{name}_{end}={limit:x}" for end, limit in zip(("low", "high"), limits, strict=True))


def write_memory(directory: Path, content: np.ndarray, beat_bytes: int) -> list[str]:
    """Write what the memory starts with, and return the arguments that load it and that have as much written back.

    Arguments:
        directory: of the run; gets hbm.bin, and in the end hbm_out.bin.
        content: uint8 [bytes], from address 0.
        beat_bytes: of the harness's memory.
    """
    beats = -(-len(content) // beat_bytes)
    padded = np.zeros((beats, beat_bytes), np.uint8)
    padded.reshape(-1)[: len(content)] = content
    (directory / "hbm.bin").write_bytes(padded[:, ::-1].tobytes())
    directory = directory.resolve()
    return [
        f"+hbm={directory / 'hbm.bin'}",
        f"+hbm_beats={beats}",
        f"+hbm_out={directory / 'hbm_out.bin'}",
        f"+hbm_out_beats={beats}",
    ]


def read_memory(directory: Path) -> np.ndarray:
    """Return what the memory ended with, uint8 [bytes], whole beats."""
    return np.fromfile(directory / "hbm_out.bin", np.uint8)
