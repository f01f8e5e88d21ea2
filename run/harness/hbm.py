"""HBM of a harness (`run/harness/hbm.v`): its behaviour, and the files of its contents."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.run.harness.link_view import LinkWork
from neuroncore_rtl.run.harness.verilog_text import arguments, plusargs
from neuroncore_rtl.run.settings import Settings

__all__ = [
    "HBM_ARGUMENTS", "VERILOG", "Hbm", "HbmWork", "hbm_of", "optional_arguments", "random_hbm", "read_memory",
    "write_memory",
]  # fmt: skip

VERILOG = Path(__file__).with_suffix(".v")

_NUMBERS = ("latency", "gap", "port_rate", "rate", "stall", "reorder", "interleave", "seed")
_BORDERS = ("slverr_low", "slverr_high", "decerr_low", "decerr_high")

HBM_ARGUMENTS = {"HBM_ARGUMENTS": arguments(_NUMBERS, hexadecimal=_BORDERS, prefix="hbm_")}
"""Macro that reads the plusargs of `Hbm`, all required."""


def optional_arguments() -> dict[str, str]:
    """Return the macro that reads the plusargs of `Hbm`; each may be missing."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(Hbm)}
    forms = {name: ("d", int(defaults[name])) for name in _NUMBERS} | dict.fromkeys(_BORDERS, ("h", 0))
    found = (f'if (!$value$plusargs("hbm_{n}=%{form}", {n})) {n} = {value};' for n, (form, value) in forms.items())
    return {"HBM_ARGUMENTS": " ".join(found)}


@dataclass(frozen=True, kw_only=True)
class Hbm:
    """Behaviour of the memory.

    Arguments:
        size: bytes; accesses beyond return DECERR. None: all bytes of the harness's memory.
        latency: cycles from an address, or the last beat written, to the response; at least 1.
        gap: idle cycles of a port after each burst, separate for reads and writes.
        port_rate, rate: most bytes that a port, or all ports, read and write in 256 cycles; 0: no limit.
        stall: rate of random pauses of handshakes, in 256ths of the cycles.
        reorder: rate at which a burst or response overtakes other IDs, in 256ths of the cycles.
        interleave: whether it may overtake within a burst.
        slverr, decerr: first and end byte of the range with that error response; whole beats.
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
        values: dict[str, Any] = {name: int(getattr(self, name)) for name in _NUMBERS}
        values |= {} if self.size is None else {"size": self.size}
        values |= dict(zip(_BORDERS, (f"{at:x}" for at in (*self.slverr, *self.decerr)), strict=True))
        return plusargs(**{f"hbm_{name}": value for name, value in values.items()})


def hbm_of(settings: Settings) -> Hbm:
    """Return the HBM that the variables LATENCY, BANDWIDTH, STALL and SEED describe."""
    rate = 256 * settings.values.get("BANDWIDTH", 0)
    return Hbm(latency=settings.latency, rate=rate, stall=settings.stall, seed=settings.seed)


def random_hbm(rng: np.random.Generator, **choices: Sequence[int]) -> Hbm:
    """Return an HBM; each parameter in `choices` is drawn from its values, in this order."""
    drawn: dict[str, Any] = {name: int(rng.choice(values)) for name, values in choices.items()}
    return Hbm(**drawn, seed=int(rng.integers(1, 1 << 31)))


@dataclass(frozen=True, kw_only=True)
class HbmWork(LinkWork):
    """Base of work in the HBM of cores.

    Arguments (besides those of `LinkWork`):
        memories: uint8 [cores, bytes], initial HBM from address 0. In an instance a core's HBM ends with these bytes, a
            multiple of 4096.
        behaviour: behaviour of HBM. For an instance its `size` must be None; its error ranges address the HBM of all
            cores in order.
    """

    memories: np.ndarray
    behaviour: Hbm = Hbm()

    def check_memories(self, cores: int) -> None:
        if len(self.memories) != cores or self.memories.shape[1] % 4096:
            raise ValueError(f"memories must be [{cores}, a multiple of 4096], not {list(self.memories.shape)}")

    def hbm_plusargs(self, directory: Path, beat_bytes: int, *, limited: bool) -> list[str]:
        """Write the memories to files; return the plusargs. If `limited`, a core's accesses beyond its memory fail."""
        cores, room = self.memories.shape
        limits = plusargs(hbm_room=room, hbm_size=cores * room) if limited else []
        return [*self.behaviour.plusargs(), *limits, *write_memory(directory, self.memories.reshape(-1), beat_bytes)]

    def memories_after(self, directory: Path) -> np.ndarray:
        return read_memory(directory)[: self.memories.size].reshape(self.memories.shape)


def write_memory(directory: Path, content: np.ndarray, beat_bytes: int) -> list[str]:
    """Write the initial memory, uint8 [bytes]; return the plusargs that load and dump it."""
    beats = -(-len(content) // beat_bytes)
    padded = np.zeros((beats, beat_bytes), np.uint8)
    padded.reshape(-1)[: len(content)] = content
    (directory / "hbm.bin").write_bytes(padded[:, ::-1].tobytes())
    directory = directory.resolve()
    files = {"hbm": directory / "hbm.bin", "hbm_out": directory / "hbm_out.bin"}
    return plusargs(**files, hbm_beats=beats, hbm_out_beats=beats)


def read_memory(directory: Path) -> np.ndarray:
    """Return the final memory, uint8, whole beats."""
    return np.fromfile(directory / "hbm_out.bin", np.uint8)
